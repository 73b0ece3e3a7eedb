package main

import (
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// A name that list shows can be given to the other commands, whatever its bytes.
func TestNamesThatNoArgumentCanBeAreGivenInBase64(t *testing.T) {
	t.Parallel()
	for what, name := range map[string]string{
		"no UTF-8": "\xff\xfe:42", "zero": "a\x00b", "a pattern": "\xac\xed*[", "usual": "orders:42",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			in := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
			s.Do(t, "HSET", name, program.SomeOwner, 1)
			const dead = "\xfdead"
			program.Enqueue(t, s, name, dead, time.Hour)

			listed := program.Finish(t, s.URL(), "list", "--json").Stdout
			var lock struct {
				Name   string `json:"name"`
				Base64 string `json:"name_base64"`
			}
			require.NoError(t, json.Unmarshal([]byte(listed), &lock))
			if what == "usual" {
				require.Empty(t, lock.Base64)
			} else {
				require.Equal(t, in(name), lock.Base64)
				require.Contains(t, program.Finish(t, s.URL(), "list").Stdout, "\n  base64 "+in(name)+"\n")
			}

			out := program.OK(t, s.URL(), "status", "--base64", in(name))
			require.Contains(t, out, " is held\n")
			require.Contains(t, out, `"\xfdead" (base64 `+in(dead)+")")
			require.Contains(t, program.Finish(t, s.URL(), "status", "--json", "--base64", in(name)).Stdout, `"owner_base64": "`+in(dead)+`"`)

			watch := program.Start(t, s.URL(), "watch", "--base64", "--json", in(name))
			program.Events(watch, "held")
			got := program.Finish(t, s.URL(), "unlock", "--force", "--for", "100ms", "--base64", in(name))
			require.Equal(t, 2, got.Code)
			program.OK(t, s.URL(), "unlock", "--force", "--for", "100ms", "--dead", program.SomeOwner, "--base64", in(name))
			require.EqualValues(t, 0, s.Do(t, "EXISTS", name))
			program.Events(watch, "gone")

			require.Contains(t, program.Finish(t, s.URL(), "list", "--json").Stdout, `"owner_base64":"`+in(dead)+`"`)
			require.Contains(t, program.Finish(t, s.URL(), "list").Stdout, `"\xfdead" (base64 `+in(dead)+")")
			require.Contains(t, program.OK(t, s.URL(), "evict", "--json", "--base64", in(name), in(dead)), `"owner_base64": "`+in(dead)+`"`)
			require.EqualValues(t, 0, s.Do(t, "EXISTS", codec.QueueKey(name)))

			s.Do(t, "HSET", name, program.SomeOwner, 1)
			program.Events(watch, "taken")
			s.Do(t, "DEL", name)
			s.Do(t, "PUBLISH", codec.LockChannel(name), 0)
			events := program.Events(watch, "released") // without the message it would be gone
			require.Equal(t, lock.Name, events[len(events)-1]["name"])
			require.NoError(t, watch.Cmd.Process.Kill())
		})
	}
}

func TestWhatIsNotBase64IsRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"status", "--base64", "a"}, {"watch", "--base64", "a"}, {"unlock", "--force", "--base64", "a"},
		{"evict", "--base64", "YQ==", "a"}, {"evict", "--base64", "--all-dead", "a"},
	} {
		got := program.Finish(t, program.NoServer(t), args...)
		require.Equal(t, program.Outcome{Code: 2, Stderr: "redlatch: --base64: a is not in base64\n"}, got, args)
	}
}

// Java has no string for it.
func TestRunTakesNoNameThatIsNoUTF8(t *testing.T) {
	t.Parallel()
	got := program.Finish(t, program.NoServer(t), "run", "\xff", "--", "true")
	require.Equal(t, 125, got.Code)
	require.Contains(t, got.Stderr, "is not valid UTF-8")
}

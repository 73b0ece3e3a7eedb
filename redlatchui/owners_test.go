package redlatchui_test

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/redlatchui"
)

// oneForm follows the link on the page of a lock that takes it from one owner, and sends the form.
func oneForm(t *testing.T, page *redlatchui.Page, name, owner string) (status int, form url.Values, text string) {
	t.Helper()
	link := "unlock?name=" + name + "&owner=" + base64.RawURLEncoding.EncodeToString([]byte(owner))
	_, text = get(t, page, "/lock?name="+name)
	require.Contains(t, html.UnescapeString(text), `href="`+link+`"`)
	status, text = get(t, page, "/"+link)
	require.Equal(t, 200, status)
	address, form := formOf(t, text)
	status, text = post(t, page, address, form)
	return status, form, text
}

func TestFormTakesLockFromOneReader(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	page, told := acting(t, s)
	s.Do(t, "HSET", "books", "mode", "read", program.SomeOwner, 1, program.RedissonOwner, 1)
	s.Do(t, "PEXPIRE", "books", time.Hour.Milliseconds())
	s.Do(t, "SET", "{books}:"+program.SomeOwner+":rwlock_timeout:1", 1, "PX", time.Hour.Milliseconds())
	s.Do(t, "SET", "{books}:"+program.RedissonOwner+":rwlock_timeout:1", 1)
	status, form, text := oneForm(t, page, "books", program.RedissonOwner)
	require.Equal(t, 200, status, text)
	require.Equal(t, []string{program.RedissonOwner}, form["holder"])
	require.Contains(t, text, "The lock was taken from Redisson 0b8f3a11:57. No waiter was notified: other holders have it still.")
	require.EqualValues(t, 1, s.Do(t, "HEXISTS", "books", program.SomeOwner))
	require.EqualValues(t, 0, s.Do(t, "HEXISTS", "books", program.RedissonOwner))
	all := told.take()
	require.Len(t, all, 2)
	require.Equal(t, []string{program.RedissonOwner}, all[1].Owners)
	require.Equal(t, redlatchui.OutcomeDone, all[1].Outcome)
	status, text = post(t, page, "/unlock?name=books", takes(program.RedissonOwner))
	require.Equal(t, 409, status)
	require.Contains(t, text, "is no longer held as it was shown")
}

// Readers that come after the form was made keep the lock, and do not keep it from being taken.
func TestFormLeavesNewReadersAlone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	page, _ := acting(t, s)
	s.Do(t, "HSET", "books", "mode", "read", program.RedissonOwner, 1)
	_, text := get(t, page, "/unlock?name=books")
	address, form := formOf(t, text)
	s.Do(t, "HSET", "books", program.SomeOwner, 1)
	s.Do(t, "SET", "{books}:"+program.SomeOwner+":rwlock_timeout:1", 1, "PX", time.Hour.Milliseconds())
	status, text := post(t, page, address, form)
	require.Equal(t, 200, status, text)
	require.EqualValues(t, 1, s.Do(t, "HEXISTS", "books", program.SomeOwner))
	require.EqualValues(t, 0, s.Do(t, "HEXISTS", "books", program.RedissonOwner))
}

func TestFormTakesBackOnePermit(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	page, told := acting(t, s)
	s.Do(t, "SET", "downloads", 0)
	s.Do(t, "ZADD", codec.PermitsKey("downloads"), codec.PermitForever, "0123456789abcdef", codec.PermitForever, "by hand")
	for i, id := range []string{"0123456789abcdef", "by hand"} {
		digits := hex.EncodeToString([]byte(id))
		status, form, text := oneForm(t, page, "downloads", digits)
		require.Equal(t, 200, status, text)
		require.Equal(t, []string{digits}, form["holder"])
		require.Contains(t, text, "The permit was taken back: "+digits+". No waiter was notified: no connection of the master is subscribed to the semaphore")
		require.Equal(t, []byte{byte('1' + i)}, s.Do(t, "GET", "downloads"))
		all := told.take()
		require.Len(t, all, 2)
		require.Equal(t, []string{digits}, all[1].Owners)
		require.Equal(t, redlatchui.OutcomeDone, all[1].Outcome)
		status, text = post(t, page, "/unlock?name=downloads", takes(digits))
		require.Equal(t, 409, status)
		require.Contains(t, text, "no permit with the id "+digits+" is taken")
		told.take()
	}
}

func TestLongPermitHasNoLink(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	page, _ := acting(t, s)
	s.Do(t, "SET", "downloads", 0)
	s.Do(t, "ZADD", codec.PermitsKey("downloads"), codec.PermitForever, "0123456789abcdef", codec.PermitForever, strings.Repeat("x", 1000))
	_, text := get(t, page, "/lock?name=downloads")
	require.Contains(t, text, "(2000 bytes)")
	require.Equal(t, 1, strings.Count(text, "unlock?"), "an address has room for short ids")
}

func TestLinksOfOneHolderNeedTheRight(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	page := open(t, s, redlatchui.Options{Access: always(redlatchui.ReadOnly)})
	s.Do(t, "HSET", "books", "mode", "read", program.SomeOwner, 1, program.RedissonOwner, 1)
	s.Do(t, "SET", "downloads", 0)
	s.Do(t, "ZADD", codec.PermitsKey("downloads"), codec.PermitForever, "0123456789abcdef")
	for _, name := range []string{"books", "downloads"} {
		_, text := get(t, page, "/lock?name="+name)
		require.NotContains(t, text, "unlock?", name)
		require.Equal(t, 1, strings.Count(text, "<h1>"))
		status, _ := get(t, page, "/unlock?name="+name+"&owner="+evicts(program.SomeOwner).Get("owner"))
		require.Equal(t, 403, status)
	}
	status, _ := get(t, open(t, s, redlatchui.Options{Access: always(redlatchui.FullAccess), Audit: (&audits{}).add}), "/unlock?name=books&owner=!")
	require.Equal(t, 400, status)
}

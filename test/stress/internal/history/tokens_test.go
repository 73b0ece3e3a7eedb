package history

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTokensThatDoNotGrowAreFound(t *testing.T) {
	t.Parallel()
	deeds := []deed{{"a", 1 * s, 2 * s}, {"b", 3 * s, 4 * s}, {"c", 5 * s, 6 * s}}
	forgot := Record{T: 4500 * s / 1000, Until: 4600 * s / 1000, Kind: Fault, Op: "restarted empty", Key: "*"}
	for what, c := range map[string]struct {
		tokens []int64
		more   []Record
		want   []string
	}{
		"they grow":                             {[]int64{1, 2, 7}, nil, nil},
		"a lock without tokens":                 {[]int64{0, 0, 0}, nil, nil},
		"the same twice":                        {[]int64{1, 1, 2}, nil, []string{"tokens"}},
		"it falls":                              {[]int64{5, 6, 1}, nil, []string{"tokens"}},
		"it falls below one long before":        {[]int64{5, 0, 4}, nil, []string{"tokens"}},
		"the server was made to forget":         {[]int64{5, 6, 1}, []Record{forgot}, nil},
		"the server was made to forget, later":  {[]int64{6, 5, 1}, []Record{forgot}, []string{"tokens"}},
		"the server forgot one key and not all": {[]int64{5, 6, 1}, []Record{{T: forgot.T, Until: forgot.Until, Kind: Fault, Key: "other"}}, []string{"tokens"}},
	} {
		var all []Record
		for i, d := range deeds {
			for _, r := range d.records(fmt.Sprint("h", i)) {
				if r.Kind == Grant {
					r.Token = c.tokens[i]
				}
				all = append(all, r)
			}
		}
		assert.Equal(t, c.want, checks(NewStory(append(all, c.more...))), what)
	}
}

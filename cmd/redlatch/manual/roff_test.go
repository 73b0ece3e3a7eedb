package manual

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each form that a help has on the terminal has one in a page.
func TestTextKeepsItsForms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"paragraphs":                   {"one\ntwo\n\nthree", "one\ntwo\n.PP\nthree\n"},
		"a list":                       {"says:\n\n  a    first\n       of all\n  b-c  second", "says:\n.TP\n\\fBa\\fR\nfirst\nof all\n.TP\n\\fBb\\-c\\fR\nsecond\n"},
		"a head as wide as its column": {"  0     zero\n  128+n signal", ".TP\n\\fB0\\fR\nzero\n.TP\n\\fB128+n\\fR\nsignal\n"},
		"points":                       {"  - one\n    goes on\n  - two", ".TP\n\\fB•\\fR\none\ngoes on\n.TP\n\\fB•\\fR\ntwo\n"},
		"code":                         {"so:\n\n    ./a\n      b", "so:\n.PP\n.RS 4\n.nf\n\\&./a\n  b\n.fi\n.RE\n"},
		"a table":                      {"  a  one    b  two\n  c  three  d  four", ".RS 4\n.nf\na  one    b  two\nc  three  d  four\n.fi\n.RE\n"},
		"what roff would read":         {".so x\n'a' \\n `b`", "\\&.so x\n\\(aqa\\(aq \\en \\(gab\\(ga\n"},
		"a list without a blank line":  {"one:\n  a  first\ntwo", "one:\n.TP\n\\fBa\\fR\nfirst\n.PP\ntwo\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p roff
			p.text(c.text)
			require.Equal(t, c.want, p.String())
		})
	}
}

func TestAFlagThatCannotBeReadIsNoSilentGap(t *testing.T) {
	t.Parallel()
	var p roff
	p.flags("OPTIONS", "")
	require.Empty(t, p.String())
	p.flags("OPTIONS", "  -s, --shell         print\n      --wait duration   give up\n")
	require.Panics(t, func() { p.flags("OPTIONS", "nonsense") })
}

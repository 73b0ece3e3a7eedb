package oracle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Corpus has the recorded vectors of one kind of lock. Each file of it has those
// of an operation.
type Corpus struct {
	kind    *Kind
	vectors []Vector
}

// Load reads a kind's files in a folder. A file that is not there is an empty
// one.
func Load(folder string, kind *Kind) (*Corpus, error) {
	c := &Corpus{kind: kind}
	for _, op := range kind.Operations {
		path := c.path(folder, op)
		text, err := os.ReadFile(path) //nolint:gosec // the module's own files
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var all []Vector
		if err := json.Unmarshal(text, &all); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for i := range all {
			all[i].Step.Op = op
		}
		c.vectors = append(c.vectors, all...)
	}
	return c, nil
}

func (c *Corpus) path(folder string, op *Operation) string {
	return filepath.Join(folder, c.kind.Name+"-"+op.Name+".json")
}

// Save writes the files. The same vectors make the same bytes.
func (c *Corpus) Save(folder string) error {
	for _, op := range c.kind.Operations {
		var lines [][]byte
		for _, v := range c.vectors {
			if v.Step.Op != op {
				continue
			}
			line, err := v.line()
			if err != nil {
				return err
			}
			lines = append(lines, line)
		}
		text := fmt.Appendf(nil, "[\n%s\n]\n", bytes.Join(lines, []byte(",\n")))
		if err := os.WriteFile(c.path(folder, op), text, 0o644); err != nil { //nolint:gosec // not secret
			return err
		}
	}
	return nil
}

// Vectors returns all vectors, in the order of the cases.
func (c *Corpus) Vectors() []Vector { return c.vectors }

// Of returns the vectors of a release, in the order of the cases.
func (c *Corpus) Of(r Release) []Vector {
	var all []Vector
	for _, v := range c.vectors {
		if slices.Contains(v.Redisson, r.String()) {
			v.Redisson = []string{r.String()}
			all = append(all, v)
		}
	}
	return all
}

// Replace takes what a release was seen to do now for what it did before.
// Releases that do the same share a vector.
func (c *Corpus) Replace(r Release, vectors []Vector) {
	var all []Vector
	for _, v := range c.vectors {
		v.Redisson = slices.DeleteFunc(slices.Clone(v.Redisson), func(text string) bool { return text == r.String() })
		if len(v.Redisson) > 0 {
			all = append(all, v)
		}
	}
	for _, v := range vectors {
		i := slices.IndexFunc(all, v.sameAs)
		if i < 0 {
			all = append(all, v)
			continue
		}
		all[i].Redisson = append(all[i].Redisson, r.String())
	}
	for _, v := range all {
		slices.SortFunc(v.Redisson, byRelease)
	}
	slices.SortStableFunc(all, c.order)
	c.vectors = all
}

// order is that of operations and cases, then of releases.
func (c *Corpus) order(a, b Vector) int {
	return cmp.Or(
		cmp.Compare(slices.Index(c.kind.Operations, a.Step.Op), slices.Index(c.kind.Operations, b.Step.Op)),
		cmp.Compare(c.kind.caseOf(a), c.kind.caseOf(b)),
		byRelease(a.Redisson[0], b.Redisson[0]),
	)
}

// caseOf returns the number of a vector's case, −1 for none.
func (k *Kind) caseOf(v Vector) int {
	return slices.IndexFunc(k.Cases, func(c Case) bool { return c.Step.Op == v.Step.Op && c.Does == v.Does })
}

// CasesOf returns the cases that make sense for a release.
func (k *Kind) CasesOf(r Release) []Case {
	var all []Case
	for _, c := range k.Cases {
		if k.In(r) && c.Step.Op.In(r) && (c.Of == nil || c.Of(r)) {
			all = append(all, c)
		}
	}
	return all
}

func byRelease(a, b string) int {
	x, err1 := ParseRelease(a)
	y, err2 := ParseRelease(b)
	if errors.Join(err1, err2) != nil {
		return cmp.Compare(a, b)
	}
	return slices.Compare(x.parts[:], y.parts[:])
}

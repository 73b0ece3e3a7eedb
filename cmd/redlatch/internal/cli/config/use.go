package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"go.yaml.in/yaml/v3"
)

const currentKey = "current-context"

// Use makes a context the current one. It changes only one line of the file.
func (f *File) Use(name string) error {
	if _, err := f.Find(name); err != nil {
		return err
	}
	text, err := withCurrent(f.text, name)
	if err != nil {
		return fmt.Errorf("config file %s: %w", f.Path, err)
	}
	changed, err := parse(f.Path, text)
	if err != nil || changed.Current != name || !reflect.DeepEqual(changed.Contexts, f.Contexts) {
		return fmt.Errorf("config file %s: cannot change its %s: change it with an editor", f.Path, currentKey)
	}
	return replace(f.Path, text)
}

func withCurrent(text []byte, name string) ([]byte, error) {
	value, err := yaml.Marshal(map[string]string{currentKey: name})
	if err != nil {
		return nil, err
	}
	// The YAML library counts these as ends of lines, too.
	if bytes.ContainsAny(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), "\r\u0085\u2028\u2029") {
		return nil, fmt.Errorf("unusual line ends: change its %s with an editor", currentKey)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil || len(doc.Content) == 0 {
		return nil, errors.New("has no contexts")
	}
	top, lines := doc.Content[0], bytes.SplitAfter(text, []byte("\n"))
	for i := 0; i+1 < len(top.Content); i += 2 {
		if key := top.Content[i]; key.Value == currentKey {
			if comment := top.Content[i+1].LineComment; comment != "" {
				value = append(bytes.TrimSuffix(value, []byte("\n")), " "+comment+"\n"...)
			}
			lines[key.Line-1] = value
			return bytes.Join(lines, nil), nil
		}
	}
	at := top.Line - 1
	if len(top.Content) > 0 {
		at = top.Content[0].Line - 1
	}
	before, after := bytes.Join(lines[:at], nil), bytes.Join(lines[at:], nil)
	return bytes.Join([][]byte{before, value, after}, nil), nil
}

// replace writes a new file and renames it, so that readers never see an incomplete file.
func replace(path string, text []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".config-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // it is gone after the rename
	_, err = f.Write(text)
	if err = errors.Join(err, giveTo(f, info), f.Chmod(info.Mode().Perm()), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

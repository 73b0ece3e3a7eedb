// Package config reads the file that names servers, so that --context NAME can select one.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"

	"github.com/redlatch/redlatch/internal/redisurl"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// PathEnv names the file. Without it, the file is in the XDG configuration directory.
const PathEnv = "REDLATCH_CONFIG"

// maxSize is in bytes. maxKeys limits the keys of a mapping, because the YAML library takes quadratic time.
const maxSize, maxKeys = 64 << 10, 1000

// File is the configuration file.
type File struct {
	// Path is "" if there is no home directory.
	Path     string              `yaml:"-"`
	Current  string              `yaml:"current-context"`
	Contexts map[string]*Context `yaml:"contexts"`
	// Missing is set if there is no such file.
	Missing bool `yaml:"-"`

	text []byte
}

// Context names a server. Its keys are the connection flags. Paths are relative to the file's directory, or begin with ~/.
type Context struct {
	Redis           string  `yaml:"redis"`
	User            string  `yaml:"user"`
	PasswordFile    string  `yaml:"password-file"`
	PasswordCommand Command `yaml:"password-command"`
	CA              string  `yaml:"tls-ca"`
	Cert            string  `yaml:"tls-cert"`
	Key             string  `yaml:"tls-key"`
	ServerName      string  `yaml:"tls-server-name"`
	Insecure        bool    `yaml:"tls-insecure-skip-verify"`
	// Dir is the file's directory, in which PasswordCommand runs.
	Dir string `yaml:"-"`
}

// Path returns the path of the file, and whether the environment names it.
func Path() (path string, named bool) {
	if path = os.Getenv(PathEnv); path != "" {
		return path, true
	}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // the specification ignores relative paths
		home, err := os.UserHomeDir()
		if err != nil {
			return "", false
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "redlatch", "config.yaml"), false
}

// Load reads the file. A missing file is empty, unless the environment names it.
func Load() (*File, error) {
	path, named := Path()
	if path == "" {
		return &File{}, nil
	}
	text, err := read(path, ownedByOther)
	switch {
	case (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) && !named:
		return &File{Path: path, Missing: true}, nil
	case err != nil && named:
		return nil, fmt.Errorf("%s: %w", PathEnv, err)
	case err != nil:
		return nil, fmt.Errorf("config file: %w", err)
	}
	file, err := parse(path, text)
	if err != nil {
		return nil, fmt.Errorf("config file %s: %w", path, err)
	}
	return file, nil
}

// Read reads a file with passwords. Other users must not be able to write it, but may own it: a
// container's files often belong to the user who starts it.
func Read(path string) ([]byte, error) {
	return read(path, func(fs.FileInfo) bool { return false })
}

func read(path string, foreign func(fs.FileInfo) bool) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the user's own file
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	// A user who can write the file can run commands as its reader and choose the server.
	case runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("%s: other users can write this file: run chmod go-w on it", path)
	case info.Mode().IsRegular() && foreign(info):
		return nil, fmt.Errorf("%s: another user owns this file: make a copy of your own", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(text) > maxSize {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxSize)
	}
	return text, err
}

func parse(path string, text []byte) (*File, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, explained(err)
	}
	if err := checkKeys(&document); err != nil {
		return nil, err
	}
	f := &File{}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(f); err != nil && !errors.Is(err, io.EOF) {
		return nil, explained(err)
	}
	if err := d.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("contains more than one document")
	}
	f.Path, f.text = path, text
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	for name, c := range f.Contexts {
		if c == nil {
			c = &Context{}
			f.Contexts[name] = c
		}
		c.Dir = dir
		for _, file := range []*string{&c.PasswordFile, &c.CA, &c.Cert, &c.Key} {
			*file = below(dir, *file)
		}
		if len(c.PasswordCommand) > 0 && filepath.Base(c.PasswordCommand[0]) != c.PasswordCommand[0] {
			c.PasswordCommand[0] = below(dir, c.PasswordCommand[0]) // otherwise it is looked up in PATH
		}
	}
	return f, nil
}

// checkKeys rejects duplicate keys. The YAML library would report each pair of them.
func checkKeys(n *yaml.Node) error {
	seen := map[string]bool{}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if seen[child.Value] {
				return fmt.Errorf("line %d: duplicate key %s", child.Line, sanitize.Word(child.Value))
			}
			if seen[child.Value] = true; len(seen) > maxKeys {
				return fmt.Errorf("line %d: more than %d keys", child.Line, maxKeys)
			}
		}
		if err := checkKeys(child); err != nil {
			return err
		}
	}
	return nil
}

func below(dir, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

var (
	unknownKey = regexp.MustCompile(`(?s)field (.*) not found in type \S+$`)
	wrongType  = regexp.MustCompile(`(?s)cannot unmarshal !!(\S+).* into \S+$`)
)

// explained returns the first error in the terms of the file. It omits values, which may be secret.
func explained(err error) error {
	var several *yaml.TypeError
	if !errors.As(err, &several) || len(several.Errors) == 0 {
		return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	said := wrongType.ReplaceAllString(several.Errors[0], "unexpected value of type $1")
	if m := unknownKey.FindStringSubmatch(said); m != nil {
		said = strings.TrimSuffix(said, m[0]) + "unknown key " + sanitize.Word(m[1])
		if m[1] == "password" {
			said += ": use password-file or password-command"
		}
	}
	return errors.New(said)
}

func (c *Context) check() error {
	switch {
	case c.Redis == "":
		return errors.New("redis is missing: the address of the server")
	case connect.Shows(c.Redis, c.PasswordFile != "" || len(c.PasswordCommand) > 0):
		return errors.New("redis contains a password: use password-file or password-command, and REDIS_URL for an address with sentinel_password")
	case c.PasswordFile != "" && len(c.PasswordCommand) > 0:
		return errors.New("password-file and password-command are mutually exclusive")
	}
	if _, err := redisurl.Parse(c.Redis); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	return nil
}

// TLS returns the TLS settings.
func (c *Context) TLS() connect.TLS {
	return connect.TLS{CA: c.CA, Cert: c.Cert, Key: c.Key, ServerName: c.ServerName, Insecure: c.Insecure}
}

// Names returns the sorted names of the contexts.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.Contexts)) }

// Find returns a context. An error in another context does not matter.
func (f *File) Find(name string) (*Context, error) {
	switch c := f.Contexts[name]; {
	case c != nil:
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("context %s in %s: %w", sanitize.Word(name), f.Path, err)
		}
		return c, nil
	case f.Path == "":
		return nil, fmt.Errorf("context %s: no home directory: set %s", sanitize.Word(name), PathEnv)
	case f.Missing:
		return nil, fmt.Errorf("context %s: the config file %s does not exist", sanitize.Word(name), f.Path)
	case len(f.Contexts) == 0:
		return nil, fmt.Errorf("context %s: %s has no contexts", sanitize.Word(name), f.Path)
	}
	names := f.Names()
	for i := range names {
		names[i] = sanitize.Word(names[i])
	}
	return nil, fmt.Errorf("context %s is not in %s, which has %s", sanitize.Word(name), f.Path, strings.Join(names, ", "))
}

//go:build unix

package control

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

const (
	runtimeEnv = "XDG_RUNTIME_DIR"
	// longest is how long the path of a socket may be on all systems.
	longest = 100
)

// Path returns the path of the socket of an owner's hold. It makes the folder, in XDG_RUNTIME_DIR
// or else in that for temporary files. An error says that the folder cannot be made, or can be
// written by other users.
func Path(owner string) (string, error) {
	folder := filepath.Join(os.TempDir(), "redlatch-"+strconv.Itoa(os.Geteuid()))
	if own := os.Getenv(runtimeEnv); filepath.IsAbs(own) {
		folder = filepath.Join(own, "redlatch")
	}
	if err := makePrivate(folder); err != nil {
		return "", fmt.Errorf("no folder for a socket: %w. "+runtimeEnv+" may name another", err)
	}
	sum := sha256.Sum256([]byte(owner))
	path := filepath.Join(folder, hex.EncodeToString(sum[:12])+".sock")
	if len(path) > longest {
		return "", fmt.Errorf("%s is too long for a socket: "+runtimeEnv+" may name a shorter folder", path)
	}
	return path, nil
}

// makePrivate makes a folder that this user alone can use, or finds it.
func makePrivate(folder string) error {
	//nolint:gosec // the user's own environment names the folder
	if err := os.Mkdir(folder, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	info, err := os.Lstat(folder) //nolint:gosec // as above
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s can be used by other users", folder)
	}
	return nil
}

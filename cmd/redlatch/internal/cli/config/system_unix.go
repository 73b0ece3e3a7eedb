//go:build unix

package config

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByOther reports whether the owner is neither this user nor root.
func ownedByOther(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid()
}

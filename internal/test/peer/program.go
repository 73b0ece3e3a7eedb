package peer

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrMissing reports that something is not there that the peer needs.
var ErrMissing = errors.New("the Redisson peer is not ready")

// mainClass is the Java program.
const mainClass = "dev.redlatch.peer.Main"

// Program is a peer that can be started.
type Program struct {
	// Version is the release of Redisson.
	Version string

	java      string
	classPath string
}

// Find looks for Java, the built program and the jars of a release below root,
// the folder of the module. What is missing is an error that wraps ErrMissing
// and says what to do.
func Find(root, version string) (Program, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return Program{}, fmt.Errorf("%w: no java here; install a JDK, 17 or later, and Maven", ErrMissing)
	}
	target, err := filepath.Abs(filepath.Join(root, "internal", "test", "peer", "java", "target"))
	if err != nil {
		return Program{}, err
	}
	classes := filepath.Join(target, "classes")
	if _, err := os.Stat(filepath.Join(target, "classes.sum")); err != nil {
		return Program{}, missing("not built", version)
	}
	jars, err := os.ReadFile(filepath.Join(target, "classpath", version+".txt")) //nolint:gosec // the tester's own files
	if err != nil {
		return Program{}, missing("release "+version+" not resolved", version)
	}
	path := append([]string{classes}, filepath.SplitList(strings.TrimSpace(string(jars)))...)
	for _, entry := range path {
		if _, err := os.Stat(entry); err != nil { //nolint:gosec // the tester's own files
			return Program{}, missing(entry+" is gone", version)
		}
	}
	return Program{
		Version:   version,
		java:      java,
		classPath: strings.Join(path, string(filepath.ListSeparator)),
	}, nil
}

func missing(what, version string) error {
	return fmt.Errorf("%w: %s; run scripts/compat.sh %s", ErrMissing, what, version)
}

// command is how the process is started: a small machine of short life, which
// gains nothing from optimizing compilers and parallel collectors.
func (p Program) command() *exec.Cmd {
	//nolint:gosec // a program and jars of the tester's own
	return exec.Command(p.java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
		"-cp", p.classPath, mainClass)
}

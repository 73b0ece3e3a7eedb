package hold

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// leavesOrphans leaves orphans that end at once, and others that end beside the command. It exits
// with 7, or with 9 if a zombie stays: signal 0 reaches zombies.
const leavesOrphans = `
pids=$(for i in 1 2 3 4 5 6 7 8; do sh -c 'sh -c "exit 3" >&- & echo $!'; done)
for pid in $pids; do
	n=0
	while kill -0 $pid 2>&-; do n=$((n+1)); [ $n -lt 300 ] || exit 9; sleep 0.05; done
done
for i in 1 2 3 4 5 6 7 8; do (exit 3 &); done
exit 7`

func TestRunAsProcess1ReapsOrphans(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for range 5 {
		p := startAsProcess1(t, s.URL(), "run", redistest.Key(t), "--", "sh", "-c", leavesOrphans)
		got := p.Outcome(2 * program.Soon)
		require.Equal(t, program.Outcome{Code: 7}, got)
	}
}

// startAsProcess1 starts redlatch in a PID namespace of its own, for which it takes a user namespace
// if this user is not root.
func startAsProcess1(t *testing.T, url string, args ...string) *program.Process {
	t.Helper()
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if os.Getuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	}
	p, err := program.StartIn(t, attr, []string{"REDIS_URL=" + url}, args...)
	if errors.Is(err, syscall.EPERM) && os.Getenv("CI") != "true" {
		t.Skip("the system does not let this user make PID namespaces: ", err)
	}
	require.NoError(t, err)
	return p
}

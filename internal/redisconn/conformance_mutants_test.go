package redisconn_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/redistest/breakable"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
	"github.com/redlatch/redlatch/transport/transporttest"
)

// mutantEnv names the mutant that TestMutant is to run the suite on.
const mutantEnv = "REDLATCH_CONFORMANCE_MUTANT"

// mutant is the built-in transport with one thing broken, and the case of the
// conformance suite that must notice.
type mutant struct {
	wrap func(*redisconn.Redigo) transport.Transport
	in   string // group/case
	fine bool   // nothing is broken: the case must pass
}

var mutants = map[string]mutant{
	"done runs twice":                     {in: "calls/a plain command gets its reply", wrap: doneTwice},
	"scripts are not sent again":          {in: "scripts/a script runs after the server has forgotten it", wrap: shaOnly},
	"errors lose their code":              {in: "calls/an error of the server comes with its code, and the connection goes on", wrap: textErrors},
	"errors inside arrays are text":       {in: "scripts/a script's reply arrives, of every kind", wrap: nestedText},
	"urgent calls do not overtake":        {in: "calls/urgent calls overtake those that wait for a connection", wrap: neverUrgent},
	"Abandon is ignored":                  {in: "abandoned/a withdrawn call ends as not sent and never runs", wrap: copies},
	"Claim is not called":                 {in: "calls/a call counts as sent before its reply is there", wrap: copies},
	"late replies are lost":               {in: "abandoned/a call abandoned after it was sent gets its late reply", wrap: losesLate},
	"every done on one goroutine":         {in: "abandoned/a done of an abandoned call that blocks holds up no other reply", wrap: oneDoneAtATime},
	"replies go astray":                   {in: "load/every call ends once, with its own reply", wrap: swaps},
	"Start waits":                         {in: "faults/Start does not block while the server is frozen", wrap: waits},
	"uncertain is called not sent":        {in: "faults/a call that ran and lost its reply is uncertain, and is not repeated", wrap: optimist},
	"uncertain calls are repeated":        {in: "faults/a call that ran and lost its reply is uncertain, and is not repeated", wrap: repeats},
	"uncertain calls repeated under load": {in: "load/every call ends once, with its own reply, while connections are cut", wrap: repeats},
	"not sent is called uncertain":        {in: "faults/calls of a server that is down end as not sent", wrap: pessimist},
	"Subscribe does not wait":             {in: "subscriptions/a message published right after Subscribe returned is seen", wrap: hasty},
	"a listener blocks the others":        {in: "subscriptions/a listener that does not read delays no other", wrap: blocking},
	"subscriptions are never closed":      {in: "subscriptions/closed subscriptions end on the server", wrap: neverUnsubscribes},
	"one Close closes all":                {in: "subscriptions/subscriptions to one channel are independent", wrap: closesAll},
	"dropped events count twice":          {in: "subscriptions/a listener that does not read delays no other", wrap: countsDropped(2)},
	"dropped events are not counted":      {in: "subscriptions/a listener that does not read delays no other", wrap: countsDropped(0), fine: true},
	"contexts are ignored":                {in: "subscriptions/Subscribe returns when its context ends while the server is frozen", wrap: noContext},
	"gaps are swallowed":                  {in: "gaps/every subscription hears of a gap after each cut, and messages after it", wrap: noGaps},
	"wake-ups are lost":                   {in: "gaps/no wake-up is lost while connections are cut", wrap: noGaps},
	"Close does not say closed":           {in: "close/Start after Close ends as not sent", wrap: notClosed},
	"Close does not wait":                 {in: "close/Close ends calls in flight as uncertain", wrap: closesLater},
	"Fence does nothing":                  {in: "optional/Fence: a call whose connection was cut never runs any more", wrap: noFence},
	"Fence takes what it is given":        {in: "optional/Fence: a call that was never sent, or by another client, cannot be fenced", wrap: noFence},
	"Reconnected is closed from the start": {
		in: "optional/Reconnected: the channel is closed at the next reconnect, and not before", wrap: alwaysReconnected,
	},
	"counts are zeros when no server answers": {in: "optional/Listeners: what cannot be found out is an error and not a zero", wrap: counts(zeros)},
	"counts are zeros when it is forbidden":   {in: "optional/Listeners: a server that refuses to count is an error, and not a zero", wrap: counts(zeros)},
	"counts are in the wrong order":           {in: "optional/Listeners: each channel has its number, in the order asked, and 0 where there is no subscriber", wrap: counts(backwards)},
	"a count ignores its context":             {in: "optional/Listeners: an ended context ends it", wrap: counts(heedless)},
	"only the first channels are counted":     {in: "optional/Listeners: many channels are counted in one go", wrap: counts(firstOnly)},
	"WAIT on another connection":              {in: "replicas/Replicate: a replica counts when it has the write, and not before", wrap: replicas(elsewhere)},
	"WAIT on the connection of all":           {in: "replicas/Replicate: other calls do not wait for replicas", wrap: replicas(onTheMux)},
	"WAIT without an end":                     {in: "replicas/Replicate: its time ends the wait, and the call has run", wrap: replicas(forLong)},
	"one WAIT after the other":                {in: "replicas/Replicate: many calls share the time of one", wrap: oneByOne},
	"errors are no replicas":                  {in: "replicas/Replicate: what the server refuses is an error", wrap: replicas(noErrors)},
	"calls to replicas cannot be withdrawn":   {in: "replicas/Replicate: a withdrawn call never runs", wrap: replicas(copied)},
	"Close does not end WAIT":                 {in: "replicas/Replicate: Close ends it", wrap: replicas(neverClosed)},
	"wrappers are passed by":                  {in: "lead/Leads: a transport that wraps this one is not passed by", wrap: passesWrappersBy},
	"Lead ignores its context":                {in: "lead/Lead: an ended context ends it, and the call goes on", wrap: neverReturns},
	"Lead cannot be interrupted":              {in: "lead/Lead: Interrupt ends it, and the call goes on", wrap: uninterrupted},
	"Lead does not notify its caller":         {in: "lead/Lead: the caller is notified of the start, once", wrap: leadWithoutStart},
	"Lead runs done twice":                    {in: "lead/Lead: every call ends once, with its own reply", wrap: leadsTwice},
	"slots ignore tags":                       {in: "optional/Slot: keys have the slots that Redis gives them", wrap: slotted(slotOfAll)},
	"slots are right":                         {in: "optional/Slot: keys have the slots that Redis gives them", wrap: slotted(slotOf), fine: true},
}

func TestTheConformanceSuiteFindsEveryMutant(t *testing.T) {
	testlevel.All(t, "a process and a server for each of 30 mutants")
	t.Parallel()
	exe, err := os.Executable()
	require.NoError(t, err)
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, testCase, _ := strings.Cut(m.in, "/")
			cmd := exec.CommandContext(t.Context(), exe, "-test.v", "-test.timeout=90s", "-test.run=^TestMutant$/^"+escape(m.in))
			cmd.Env = append(os.Environ(), mutantEnv+"="+name)
			out, err := cmd.CombinedOutput()
			verdict := "--- FAIL: "
			if m.fine {
				verdict = "--- PASS: "
				assert.NoError(t, err)
			}
			want := verdict + "TestMutant/" + strings.ReplaceAll(m.in, " ", "_")
			assert.Contains(t, string(out), want, "the case %q did not notice", testCase)
			assert.NotContains(t, string(out), "panic: test timed out")
		})
	}
}

// escape makes a pattern of a subtest's name, a slash between its parts.
func escape(name string) string {
	name = strings.NewReplacer("(", "\\(", ")", "\\)", " ", "_").Replace(name)
	return strings.ReplaceAll(name, "/", "$/^") + "$"
}

// TestMutant is run by TestTheConformanceSuiteFindsEveryMutant, in a process of
// its own, and is expected to fail.
func TestMutant(t *testing.T) {
	m, ok := mutants[os.Getenv(mutantEnv)]
	if !ok {
		t.Skip("there is no mutant to run")
	}
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		t.Helper()
		server := redistest.Start(t)
		proxy := redistest.NewProxy(t, server.Addr())
		h := breakable.Behind(proxy, server)
		h.New = func(testing.TB) transport.Transport { return m.wrap(redigoTo(proxy.Addr())) }
		if !m.fine {
			h.Patience = 3 * time.Second
		}
		return h
	})
}

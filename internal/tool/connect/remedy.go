package connect

import "strings"

// remedies say what to do about a refusal, by its code.
var remedies = map[string]string{ //nolint:gosec // G101: it names where passwords come from, and has none
	"READONLY":   "It is a replica: name its master (redis-cli ROLE shows it), or the Sentinels that do (redis-sentinel://).",
	"OOM":        "Its memory is full: make room, or raise maxmemory. Locks are small, and fail with the rest.",
	"LOADING":    "It has just started: wait until it has read its data.",
	"BUSY":       "A script of some client runs for long: SCRIPT KILL ends one that has written nothing.",
	"MISCONF":    "It cannot save its data, and so refuses to write: see its log and its disk.",
	"WRONGTYPE":  "Something else uses a key of the lock: `redlatch status` names it.",
	"NOAUTH":     "Check user and password: --user, and REDIS_PASSWORD or --password-file.",
	"WRONGPASS":  "Check user (--user, or in the address) and password (REDIS_PASSWORD or --password-file).",
	"NOREPLICAS": "Fewer replicas are connected and up to date than min-replicas-to-write requires: INFO replication lists them.",
	"MASTERDOWN": "It is a replica without a link to its master, and replica-serve-stale-data is off: name the master, or see INFO replication and its log.",
	"CLUSTERDOWN": "A master is down, or slots have none. A failover takes cluster-node-timeout and some seconds; " +
		"`redlatch doctor` shows the masters, redis-cli --cluster check the slots.",
	"TRYAGAIN": slotMoves,
	"ASK":      slotMoves,
}

const slotMoves = "The slot of this name is being moved to another node, and its keys are on both. Try again after the move; " +
	"`redlatch doctor` shows slots that are being moved, and redis-cli --cluster fix finishes an interrupted move."

// phrases are remedies for errors whose code says less than their text.
var phrases = []struct{ part, remedy string }{
	{"No such master", "Name the master as its Sentinels do, in the path of --redis or REDIS_URL."},
	{"DB index", "It has no database of this number: most servers have 0 to 15. The address in --redis or REDIS_URL names it, behind the last /, or db= of a unix socket."},
	{"SELECT is not allowed in cluster mode", "It is a node of a cluster, which has database 0 alone: leave the number out, and name the cluster with redis-cluster:// in --redis or REDIS_URL."},
	{"max number of clients", "It has no room for another connection: end some clients, or raise maxclients."},
	{"cluster support disabled", "It is in no cluster: name it with redis:// in --redis or REDIS_URL."},
}

func remedy(text string) string {
	if isDenial(text) {
		return remedyOfDenial(text, nil)
	}
	for _, p := range phrases {
		if strings.Contains(text, p.part) {
			return p.remedy
		}
	}
	code, _, _ := strings.Cut(text, " ")
	return remedies[code]
}

// remedyHere is remedy for this server, which may be queried.
func (s *Server) remedyHere(text string) string {
	code, _, _ := strings.Cut(text, " ")
	switch {
	case (code == "MOVED" || code == "CROSSSLOT") && !s.IsCluster():
		return "It is a node of a cluster: name it with redis-cluster:// in --redis or REDIS_URL."
	case !strings.Contains(text, "unknown command"):
		return remedy(text)
	case strings.Contains(text, "SENTINEL"):
		return "It is no Sentinel: these have a port of their own, 26379 as a rule."
	}
	if at := s.sentinel(); at != "" {
		return "It is a Sentinel, which has no locks: name the Sentinels and their master in --redis or REDIS_URL, redis-sentinel://" + at +
			"/MASTER. SENTINEL MASTERS lists the masters."
	}
	return ""
}

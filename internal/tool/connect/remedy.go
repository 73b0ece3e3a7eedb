package connect

import "strings"

// remedy says what to do about a refusal.
func remedy(text string) string {
	if isDenial(text) {
		return remedyOfDenial(text, nil)
	}
	code, _, _ := strings.Cut(text, " ")
	switch {
	case strings.Contains(text, "No such master"):
		return "Name the master as its Sentinels do, in the path of --redis or REDIS_URL."
	case strings.Contains(text, "SENTINEL") && strings.Contains(text, "unknown command"):
		return "It is no Sentinel: these have a port of their own, 26379 as a rule."
	case code == "MOVED" || code == "CROSSSLOT":
		return "It is a node of a cluster: name it with redis-cluster:// in --redis or REDIS_URL."
	case strings.Contains(text, "DB index"):
		return "It has no database of this number: most servers have 0 to 15. The address in --redis or REDIS_URL names it, behind the last /, or db= of a unix socket."
	case strings.Contains(text, "SELECT is not allowed in cluster mode"):
		return "It is a node of a cluster, which has database 0 alone: leave the number out, and name the cluster with redis-cluster:// in --redis or REDIS_URL."
	case strings.Contains(text, "max number of clients"):
		return "It has no room for another connection: end some clients, or raise maxclients."
	case strings.Contains(text, "cluster support disabled"):
		return "It is in no cluster: name it with redis:// in --redis or REDIS_URL."
	}
	switch code {
	case "READONLY":
		return "It is a replica: name its master (redis-cli ROLE shows it), or the Sentinels that do (redis-sentinel://)."
	case "OOM":
		return "Its memory is full: make room, or raise maxmemory. Locks are small, and fail with the rest."
	case "LOADING":
		return "It has just started: wait until it has read its data."
	case "BUSY":
		return "A script of some client runs for long: SCRIPT KILL ends one that has written nothing."
	case "MISCONF":
		return "It cannot save its data, and so refuses to write: see its log and its disk."
	case "WRONGTYPE":
		return "Something else uses a key of the lock: `redlatch status` names it."
	case "NOAUTH":
		return "Check user and password: --user, and REDIS_PASSWORD or --password-file."
	case "WRONGPASS":
		return "Check user (--user, or in the address) and password (REDIS_PASSWORD or --password-file)."
	}
	return "Check user, password and database in --redis or REDIS_URL; `redlatch doctor` looks at the server."
}

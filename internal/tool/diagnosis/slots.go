package diagnosis

import (
	"fmt"
	"strings"

	"github.com/gomodule/redigo/redis"
)

// slots looks at the slots of a cluster, as this master knows them: whether all are served, and which
// of its own are being moved.
func (e *examination) slots() Finding {
	info, err := redis.String(e.c.Do("CLUSTER", "INFO"))
	if err != nil {
		return unknown("the state of the cluster is unknown: %s", shortError(err))
	}
	nodes, err := redis.String(e.c.Do("CLUSTER", "NODES"))
	if err != nil {
		return unknown("whether slots are being moved is unknown: %s", shortError(err))
	}
	if field(info, "cluster_state") == "fail" {
		return bad("A failover takes cluster-node-timeout and some seconds. redis-cli --cluster check shows slots without a master.",
			"the cluster is down: of %s slots that have a master, %s have one that has failed", field(info, "cluster_slots_assigned"), field(info, "cluster_slots_fail"))
	}
	if moves := movesIn(nodes); len(moves) > 0 {
		return warning("Locks of its names may fail with TRYAGAIN until the move ends; redis-cli --cluster fix finishes an interrupted one.",
			"%s", strings.Join(moves, ", "))
	}
	return good("all slots are served, none is being moved")
}

// shownMoves is how many moves of slots are named.
const shownMoves = 5

// movesIn returns the moves of slots in the reply of a master to CLUSTER NODES. The line of the master
// itself has them, as [slot->-node] and [slot-<-node].
func movesIn(reply string) (moves []string) {
	places, own := map[string]string{}, ""
	for line := range strings.Lines(reply) {
		words := strings.Fields(line)
		if len(words) < 8 {
			continue
		}
		places[words[0]] = before(words[1], "@")
		if strings.Contains(words[2], "myself") {
			own = line
		}
	}
	for _, word := range strings.Fields(own) {
		text := strings.Trim(word, "[]")
		if text == word {
			continue
		}
		if slot, node, is := strings.Cut(text, "->-"); is {
			moves = append(moves, fmt.Sprintf("slot %s is being moved to %s", slot, places[node]))
		} else if slot, node, is := strings.Cut(text, "-<-"); is {
			moves = append(moves, fmt.Sprintf("slot %s is being moved here from %s", slot, places[node]))
		}
	}
	if more := len(moves) - shownMoves; more > 0 {
		moves = append(moves[:shownMoves], fmt.Sprintf("and %d more", more))
	}
	return moves
}

// field returns a value of a reply to CLUSTER INFO.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, is := strings.CutPrefix(line, name+":"); is {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

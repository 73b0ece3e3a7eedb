// Package acl lists exactly the rights that server users need, with a [Need] for each purpose. docs/operations.md and
// `redlatch doctor` follow this list. The tests create a user for each line of the manual, and prove that its rights
// suffice and that each of them is needed.
package acl

import (
	"slices"
	"strings"
)

// The IDs of needs.
const (
	Plain      = "plain"
	Braces     = "braces"
	Fair       = "fair"
	Tokens     = "tokens"
	ReadWrite  = "read-write"
	Latches    = "latches"
	Semaphores = "semaphores"
	Clocks     = "clocks"
	Listeners  = "listeners"
	Doubt      = "doubt"
	Inspect    = "inspect"
	Owners     = "owners"
	Names      = "names"
	Replicas   = "replicas"
	Labels     = "labels"
	Viewer     = "viewer"
	Operator   = "operator"
	Onlooker   = "onlooker"
)

// Need is the set of rights that a user needs for one purpose.
type Need struct {
	// ID is one of the constants.
	ID string
	// Title is the heading of the line in the manual, or "" if it has none.
	Title string
	// User is the user's name in the manual. The first line for the user "locks" creates that user,
	// and the others add to it.
	User string
	// Commands are written as for ACL SETUSER, without the plus.
	Commands []string
	// Patterns are the keys and channels, in the manual's order.
	Patterns []Pattern
}

var needs = []Need{
	{
		ID: Plain, Title: "Plain locks", User: "locks",
		Commands: strings.Fields("eval evalsha ping del exists pexpire pttl hget hset hexists hincrby hkeys publish subscribe unsubscribe"),
		Patterns: []Pattern{locks, locksInBraces, channelsAsKeys, channels},
	},
	{
		ID: Fair, Title: "Fair locks", User: "locks",
		Commands: strings.Fields("lindex lpop rpush lrange lrem zscore zadd zrem zrange zincrby sadd zunionstore"),
		Patterns: []Pattern{queues, timeouts},
	},
	{ID: Tokens, Title: "Fencing tokens", User: "locks", Commands: []string{"incr", "get"}, Patterns: []Pattern{tokens}},
	{
		ID: ReadWrite, Title: "Read/write locks", User: "locks",
		Commands: strings.Fields("hdel hlen hgetall hmget hrandfield set"), Patterns: []Pattern{rwAsKeys, rwChannels},
	},
	{
		ID: Latches, Title: "Count-down latches", User: "locks",
		Commands: strings.Fields("get set decr"), Patterns: []Pattern{countDownsAsKeys, countDowns},
	},
	{
		ID: Semaphores, Title: "Semaphores", User: "locks",
		Commands: strings.Fields("get set incrby decrby zscore zadd zrem zrange zrangebyscore zcount"), Patterns: []Pattern{semaphoresAsKeys, semaphoreChannels},
	},
	// In the manual, this is part of the lines that create a user.
	{ID: Braces, User: "locks", Patterns: []Pattern{locksInBraces}},
	{ID: Clocks, Title: "Server time", User: "locks", Commands: []string{"time"}},
	{ID: Listeners, Title: "Subscribers", User: "locks", Commands: []string{"pubsub|numsub", "role"}},
	{ID: Doubt, Title: "Uncertain calls", User: "locks", Commands: []string{"client|id", "client|info", "client|kill"}},
	{ID: Inspect, Title: "Inspection", User: "locks", Commands: []string{"hgetall"}},
	{ID: Owners, Title: "Shared owners", User: "locks", Commands: []string{"get", "set"}, Patterns: []Pattern{latches}},
	{ID: Names, Title: "Connection names", User: "locks", Commands: []string{"client|setname"}},
	{ID: Replicas, Title: "Replicas", User: "locks", Commands: []string{"wait"}},
	{ID: Labels, User: "locks", Commands: []string{"set", "del"}, Patterns: []Pattern{labels}},
	{
		ID: Viewer, Title: "Inspection user", User: "viewer",
		Commands: strings.Fields("eval evalsha pttl hgetall lrange zrange"),
		Patterns: []Pattern{locks, locksInBraces, channelsAsKeys, queues, timeouts},
	},
	{
		ID: Operator, Title: "Repair user", User: "operator",
		Commands: strings.Fields("eval evalsha ping del exists hget hmget hlen hdel pexpire pttl hgetall lindex lpop lrange lrem " +
			"zscore zadd zrem zrange zincrby get getrange incrby publish subscribe unsubscribe time pubsub|numsub role"),
		Patterns: []Pattern{locks, locksInBraces, channelsAsKeys, queues, timeouts, channels, rwAsKeys, rwChannels, semaphoresAsKeys, semaphoreChannels, labels},
	},
	{
		ID: Onlooker, User: "onlooker",
		Commands: strings.Fields("ping eval evalsha hgetall pttl lrange zrange scan hscan hget get llen lindex getrange type zcount " +
			"subscribe unsubscribe psubscribe pubsub|numsub role"),
		Patterns: []Pattern{locks, locksInBraces, channelsAsKeys, queues, timeouts, tokens, labels, allChannels, allRWChannels, allSemaphoreChannels, allCountDowns},
	},
}

// All returns all needs. The caller must not modify their slices.
func All() []Need { return slices.Clone(needs) }

// Of returns the need with the given ID, or nil.
func Of(id string) *Need {
	if i := slices.IndexFunc(needs, func(n Need) bool { return n.ID == id }); i >= 0 {
		return &needs[i]
	}
	return nil
}

// Adds reports whether the need adds rights to the user of plain locks.
func (n *Need) Adds() bool { return n.User == "locks" && n.ID != Plain }

// Words returns the rules for ACL SETUSER, for locks whose names start with prefix, or with a brace and prefix.
func (n *Need) Words(prefix string) []string {
	var words []string
	for _, command := range n.Commands {
		words = append(words, "+"+command)
	}
	for i := range n.Patterns {
		if n.Patterns[i].AppliesTo(prefix) {
			words = append(words, n.Patterns[i].Word(prefix))
		}
	}
	return withoutCovered(words)
}

// withoutCovered removes the patterns that ~* or &* covers, because Redis rejects a pattern next to
// one that covers it.
func withoutCovered(words []string) []string {
	for _, all := range []string{"~*", "&*"} {
		if slices.Contains(words, all) {
			words = slices.DeleteFunc(words, func(w string) bool { return w[0] == all[0] && w != all })
		}
	}
	return words
}

#!/bin/sh
# Runs a cluster of three masters and their replicas, and ends it with itself.
#
#   cluster.sh SERVER CLI BIND REPLICAS PORT...
#
# SERVER and CLI are redis-server and redis-cli, or Valkey's; each master gets so many
# REPLICAS; there are as many nodes as PORTs. It prints "the cluster is ready" when every
# node serves its slots, every node knows all others, and every replica is in step.
#
# All nodes are in one container, and call themselves 127.0.0.1 and their port. Each port
# must be published as itself on the loopback interface of the machine; BIND is 0.0.0.0,
# since connections from outside do not come over the container's loopback.
# The nodes themselves talk on PORT+10000, which need not be published.
set -eu

server=$1 cli=$2 bind=$3 replicas=$4
shift 4
nodes=$#
slaves=$((nodes * replicas / (replicas + 1)))

dir=$(mktemp -d)
pids=
end() {
	trap - EXIT
	# shellcheck disable=SC2086 # one word for each process
	[ -z "$pids" ] || kill -9 $pids 2>/dev/null || true
	rm -rf "$dir"
}
trap end EXIT
trap 'exit 143' INT TERM

# ask asks the node at a port.
ask() {
	at=$1
	shift
	"$cli" -h 127.0.0.1 -p "$at" "$@" 2>&1 || true
}

# wait_for waits until a command succeeds, for a minute at most, while all servers live.
wait_for() {
	left=600
	until "$@"; do
		for pid in $pids; do
			kill -0 "$pid" 2>/dev/null || give_up "a server has ended"
		done
		left=$((left - 1))
		[ "$left" -gt 0 ] || give_up "a minute has passed without: $*"
		sleep 0.1
	done
}

give_up() {
	echo "cluster.sh: $1" >&2
	tail -n 5 "$dir"/*/log >&2
	exit 1
}

# listens is the case when a node has its port. Its log is read, since whoever else may
# have the port need not answer.
listens() { grep -q 'Ready to accept connections' "$dir/$1/log"; }

# settled is the case when a node knows all others, and it and its replicas are in step.
settled() {
	ask "$1" CLUSTER INFO | grep -q 'cluster_state:ok' || return 1
	all=$(ask "$1" CLUSTER NODES)
	[ "$(echo "$all" | grep -c ' connected')" -eq "$nodes" ] || return 1
	[ "$(echo "$all" | grep -c 'slave')" -eq "$slaves" ] || return 1
	ask "$1" INFO replication | grep -Eq "master_link_status:up|connected_slaves:$replicas"
}

# With so long a node timeout nobody takes a node for dead that merely waits for a busy
# machine: slots stay where they are.
for port in "$@"; do
	mkdir "$dir/$port"
	"$server" --port "$port" --bind "$bind" --protected-mode no \
		--dir "$dir/$port" --save '' --appendonly no --daemonize no \
		--cluster-enabled yes --cluster-announce-ip 127.0.0.1 --cluster-node-timeout 60000 \
		--repl-diskless-sync-delay 0 >"$dir/$port/log" 2>&1 &
	pids="$pids $!"
done

addresses=
for port in "$@"; do
	wait_for listens "$port"
	addresses="$addresses 127.0.0.1:$port"
done
# shellcheck disable=SC2086 # one word for each address
"$cli" --cluster create $addresses --cluster-replicas "$replicas" --cluster-yes
for port in "$@"; do
	wait_for settled "$port"
done
echo "the cluster is ready"
wait

package demo

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/codec"
)

// jobState is what the fair lock protects: a list of numbered jobs, how often each was
// done, the number of the last visit, and the marker of the owner inside. It also reads the
// lock's queue. It is for one goroutine.
type jobState struct {
	marker
	lock, jobs, done, visits string
	queue, timeouts          string
}

func newJobState(c redis.Conn, prefix string) *jobState {
	lock := prefix + ":lock"
	return &jobState{
		marker: marker{c, prefix + ":inside"},
		lock:   lock, jobs: prefix + ":jobs", done: prefix + ":done", visits: prefix + ":visits",
		queue: codec.QueueKey(lock), timeouts: codec.TimeoutKey(lock),
	}
}

// fill puts jobs 1 to n on the list.
func (s *jobState) fill(n int) error {
	args := redis.Args{}.Add(s.jobs)
	for job := 1; job <= n; job++ {
		args = args.Add(job)
	}
	if _, err := s.conn.Do("RPUSH", args...); err != nil {
		return err
	}
	_, err := s.conn.Do("EXPIRE", s.jobs, keyLife)
	return err
}

// next returns the first job of the list, and leaves it there; 0 when none is left.
func (s *jobState) next() (int64, error) {
	job, err := redis.Int64(s.conn.Do("LINDEX", s.jobs, 0))
	if errors.Is(err, redis.ErrNil) {
		return 0, nil
	}
	return job, err
}

// finish takes a job off the list and enters that it was done, both or neither. In
// the same moment the visit gets the next number, and the queue is read. Without a
// job, 0, it does the rest.
func (s *jobState) finish(job int64) (visit int64, queue []string, err error) {
	// What Send cannot send, EXEC below reports.
	_ = s.conn.Send("MULTI")
	_ = s.conn.Send("INCR", s.visits)
	_ = s.conn.Send("LRANGE", s.queue, 0, -1)
	if job > 0 {
		_ = s.conn.Send("LPOP", s.jobs)
		_ = s.conn.Send("HINCRBY", s.done, job, 1)
		_ = s.conn.Send("EXPIRE", s.done, keyLife)
	}
	// A queue of a demo that was killed would stay for ever, as one that came into being in the
	// visit that is killed does.
	for _, key := range []string{s.visits, s.queue, s.timeouts} {
		_ = s.conn.Send("EXPIRE", key, keyLife)
	}
	replies, err := redis.Values(s.conn.Do("EXEC"))
	if err != nil {
		return 0, nil, err
	}
	if visit, err = redis.Int64(replies[0], nil); err != nil {
		return 0, nil, err
	}
	queue, err = redis.Strings(replies[1], nil)
	return visit, queue, err
}

// readQueue returns the queued owners, the next one first.
func (s *jobState) readQueue() ([]string, error) {
	return redis.Strings(s.conn.Do("LRANGE", s.queue, 0, -1))
}

// totals returns how often each job was done, and the jobs that are left.
func (s *jobState) totals() (done map[int64]int64, left []int64, err error) {
	fields, err := redis.Int64Map(s.conn.Do("HGETALL", s.done))
	if err != nil {
		return nil, nil, err
	}
	done = map[int64]int64{}
	for field, times := range fields {
		job, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return nil, nil, fmt.Errorf("a job called %q was done", field)
		}
		done[job] = times
	}
	left, err = redis.Int64s(s.conn.Do("LRANGE", s.jobs, 0, -1))
	return done, left, err
}

// remove deletes everything that the run left on the server, with the places of dead
// workers in the queue.
func (s *jobState) remove() error {
	_, err := s.conn.Do("DEL", s.lock, s.jobs, s.done, s.visits, s.key, s.queue, s.timeouts)
	return err
}

package loss

import (
	"time"

	"github.com/gomodule/redigo/redis"
)

// rivalEvery is how often a rival asks, and so about how late it is.
const rivalEvery = 5 * time.Millisecond

// rival asks the server which of some keys are free, around whatever is broken.
type rival struct {
	conn redis.Conn
	keys []string
	// free is when the answer was back that a key was gone.
	free map[string]time.Time
}

// compete asks until every key is free, or a time has come.
func (r *rival) compete(until time.Time) error {
	tick := time.NewTicker(rivalEvery)
	defer tick.Stop()
	left := r.keys
	for len(left) > 0 && time.Now().Before(until) {
		<-tick.C
		n, err := redis.Int(r.conn.Do("EXISTS", texts(left)...))
		if err == nil && n < len(left) {
			left, err = r.which(left)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// which finds out which of the keys are gone, and returns the others.
func (r *rival) which(keys []string) ([]string, error) {
	for _, key := range keys {
		if err := r.conn.Send("EXISTS", key); err != nil {
			return nil, err
		}
	}
	if err := r.conn.Flush(); err != nil {
		return nil, err
	}
	var left []string
	for _, key := range keys {
		n, err := redis.Int(r.conn.Receive())
		if err != nil {
			return nil, err
		}
		if n == 1 {
			left = append(left, key)
		} else {
			r.free[key] = time.Now()
		}
	}
	return left, nil
}

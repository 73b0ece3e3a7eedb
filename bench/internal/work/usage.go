package work

import (
	"runtime"
	"time"
)

// usage is what this process has used until a moment.
type usage struct {
	at      time.Time
	cpu     time.Duration
	mallocs uint64
}

func now() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{at: time.Now(), cpu: processorTime(), mallocs: m.Mallocs}
}

// per returns the common figures of count events since u.
func (u usage) per(count float64) Values {
	n := now()
	return Values{
		Count:  count,
		Rate:   count / n.at.Sub(u.at).Seconds(),
		Allocs: float64(n.mallocs-u.mallocs) / count,
		CPU:    micros(n.cpu-u.cpu) / count,
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

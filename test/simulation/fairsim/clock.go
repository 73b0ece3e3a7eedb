package fairsim

// event is something that happens at a time. What is due at one time happens in the
// order in which it was planned.
type event struct {
	at, seq int64
	do      func()
}

func (e event) before(o event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// clock is fake time in milliseconds since 1970, and what is due: a binary heap.
type clock struct {
	now, seq int64
	due      []event
}

// after plans do for d milliseconds from now.
func (c *clock) after(d int64, do func()) {
	c.seq++
	e := event{c.now + max(0, d), c.seq, do}
	c.due = append(c.due, e)
	i := len(c.due) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(c.due[parent]) {
			break
		}
		c.due[i] = c.due[parent]
		i = parent
	}
	c.due[i] = e
}

// next takes the first event out. There must be one.
func (c *clock) next() event {
	first := c.due[0]
	n := len(c.due) - 1
	last := c.due[n]
	c.due[n] = event{}
	c.due = c.due[:n]
	if n > 0 {
		c.sink(last)
	}
	return first
}

// sink finds the place for an event from the top.
func (c *clock) sink(e event) {
	i, n := 0, len(c.due)
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && c.due[child+1].before(c.due[child]) {
			child++
		}
		if !c.due[child].before(e) {
			break
		}
		c.due[i] = c.due[child]
		i = child
	}
	c.due[i] = e
}

// run lets events happen until a time.
func (c *clock) run(until int64) {
	for len(c.due) > 0 && c.due[0].at <= until {
		e := c.next()
		c.now = e.at
		e.do()
	}
	c.now = until
}

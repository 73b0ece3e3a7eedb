package mux

// Drop gives the present connection up at once, if there is one: calls in flight end
// with transport.ErrUncertain, and the next call makes another. It is for who knows
// that the connection leads to the wrong server. It does not wait.
func (m *Mux) Drop(cause error) {
	if l := m.roster.present(); l != nil {
		l.fail(cause)
	}
}

// present returns the connection that there is, nil without one.
func (r *roster) present() *link {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

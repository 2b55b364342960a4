package pod

// RemindersHeld returns how many of the pod's reminders are in memory.
func (p *Pod) RemindersHeld() int {
	p.reminders.mu.Lock()
	defer p.reminders.mu.Unlock()
	return len(p.reminders.all)
}

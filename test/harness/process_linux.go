package harness

import "syscall"

// childAttributes gives the child a process group of its own, so that Ctrl-C at
// the terminal reaches only this process, which then ends its children in order;
// and a signal for the case that it cannot.
func childAttributes(c Command) *syscall.SysProcAttr {
	sig := c.OnParentDeath
	if sig == 0 {
		sig = syscall.SIGKILL
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: sig, Credential: c.Credential}
}

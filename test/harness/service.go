package harness

import (
	"context"
	"errors"
	"net/http"
	"sync"
)

// service is a program of the product that can be killed and started again as it
// was. Its methods are those of [Console] and [Agent].
type service struct {
	dir     *workDir
	ports   []*Port
	command Command
	ready   string // URL that answers 200 once it is up
	client  *http.Client

	mu      sync.Mutex
	process *Process
}

// Start starts a program that was killed or has ended, with the same data and on the
// same port, and returns when it is up.
func (s *service) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil && s.process.Running() {
		return errors.New(s.command.Name + " runs already")
	}
	process, err := Start(s.command)
	if err != nil {
		return err
	}
	s.process = process
	return process.awaitReady(ctx, s.client, s.ready)
}

// Restart ends the program in order and starts it again.
func (s *service) Restart(ctx context.Context) error {
	if p := s.Process(); p != nil {
		if err := p.Stop(); err != nil {
			return err
		}
	}
	return s.Start(ctx)
}

// Kill ends the program by SIGKILL, as a crash would.
func (s *service) Kill() error {
	if p := s.Process(); p != nil {
		return p.Kill()
	}
	return nil
}

// Stop ends the program in order and removes what the harness made for it. A second
// call does nothing.
func (s *service) Stop() error {
	var err error
	if p := s.Process(); p != nil {
		err = p.Stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir != nil {
		err = errors.Join(err, s.dir.Remove())
		s.dir = nil
	}
	err = errors.Join(err, releaseAll(s.ports))
	s.ports = nil
	return err
}

// Process is the present process: the last one started, which may have ended.
func (s *service) Process() *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Processes returns the present process in a list, for reports.
func (s *service) Processes() []*Process {
	if p := s.Process(); p != nil {
		return []*Process{p}
	}
	return nil
}

// prepare makes the directory and reserves ports.
func (s *service) prepare(prefix string, ports int) error {
	s.client = http.DefaultClient
	base, err := scratch()
	if err != nil {
		return err
	}
	if s.dir, err = newWorkDir(base, prefix); err != nil {
		return err
	}
	s.ports, err = reservePorts(ports)
	return err
}

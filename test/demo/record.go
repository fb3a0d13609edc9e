package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// What is in the demo's directory.
const (
	recordName = "demo.json"
	logsName   = "logs" // of a demo that failed
)

// record is what programs need to know of the demo that runs. It holds secrets.
type record struct {
	URL           string `json:"url"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	APIToken      string `json:"apiToken"`
	ClientID      string `json:"clientID"`
	EnvironmentID string `json:"environmentID"`
	OnboardingID  string `json:"onboardingID"`
	ClusterSlug   string `json:"clusterSlug"`
	Kubeconfig    string `json:"kubeconfig"`
	AgentPID      int    `json:"agentPID"`
}

// write puts the record into dir, whole or not at all, readable by its owner only.
func (r *record) write(dir string) (err error) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, recordName+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), filepath.Join(dir, recordName))
	}
	if err != nil {
		return fmt.Errorf("write the record: %w", errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}

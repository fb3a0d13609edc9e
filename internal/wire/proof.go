package wire

import "strings"

// EnrollProof is the text that an enrolling agent signs with its nkey, so that a token alone cannot
// bind somebody else's key: a version line, the challenge, the type, the cluster slug and the name,
// each ended by a newline.
func EnrollProof(challenge, agentType, clusterSlug, name string) []byte {
	return proof("proxima-enroll-1", challenge, agentType, clusterSlug, name)
}

// RenewProof is the text that an agent signs to renew its credential.
func RenewProof(challenge, agentID string) []byte {
	return proof("proxima-renew-1", challenge, agentID)
}

func proof(lines ...string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }

// Package enroll owns the conversation with console's HTTP API: enrolment, renewal of the credential
// and the findings of the self-check. It proves possession of the agent's nkey and sorts what goes
// wrong into a refusal, which console decided, and a fault of what lies between.
//
// The conversation, each step a request of its own:
//
//	POST /api/v1/enroll/challenge                    → challenge, good for a short time
//	POST /api/v1/enroll                              token, key, signature over wire.EnrollProof → id, credential, NATS addresses
//	POST /api/v1/enroll/agents/{agentID}/credential  signature over wire.RenewProof → credential
//	POST /api/v1/enroll/findings                     token, findings
//
// The token leaves this package only in the Authorization header; no error and no log line has it.
package enroll

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"prxm.uz/proxima/api/console/client"
	"prxm.uz/proxima/internal/wire"
)

// Client speaks to one console. It may be used from several goroutines.
type Client struct {
	api   *client.ClientWithResponses
	token string
}

// New makes a client for console at baseURL. The token may be empty for an agent that enrolled
// before; it must have passed [CheckToken] otherwise.
func New(baseURL, token string, httpClient *http.Client) (*Client, error) {
	api, err := client.NewClientWithResponses(baseURL, client.WithHTTPClient(httpClient))
	if err != nil {
		return nil, fmt.Errorf("PROXIMA_BACKEND_URL %s: %w", baseURL, err)
	}
	return &Client{api: api, token: token}, nil
}

// HasToken reports whether there is an install token to enroll or post findings with.
func (c *Client) HasToken() bool { return c.token != "" }

// TokenPrefix starts every install token.
const TokenPrefix = "pit_"

// CheckToken returns the token without the white space around it, which Secrets made with echo carry
// along, or an error that says what is wrong with its shape. The error never holds the token.
func CheckToken(raw string) (string, error) {
	token := strings.TrimSpace(raw)
	switch {
	case raw == "":
		return "", errors.New("PROXIMA_INSTALL_TOKEN is not set: put the token that the wizard shows into the Secret proxima-install-token")
	case token == "":
		return "", errors.New("the install token is empty: PROXIMA_INSTALL_TOKEN holds nothing but white space; put the token that the wizard shows into the Secret proxima-install-token")
	case !strings.HasPrefix(token, TokenPrefix):
		return "", fmt.Errorf("PROXIMA_INSTALL_TOKEN is not an install token: one begins with %s, this value of %d characters does not; copy it from the wizard once more", TokenPrefix, len(token))
	case len(token) < len(TokenPrefix)+8 || len(token) > 256:
		return "", fmt.Errorf("PROXIMA_INSTALL_TOKEN has %d characters, which no install token has: copy it from the wizard once more", len(token))
	}
	for _, r := range token {
		if r <= ' ' || r > '~' {
			return "", errors.New("PROXIMA_INSTALL_TOKEN holds white space or a character that no token has: copy it from the wizard once more, without line breaks")
		}
	}
	return token, nil
}

// Request is what an agent says of itself.
type Request struct {
	AgentType   string
	Name        string
	ClusterSlug string
	ClusterName string
	Version     string
}

// Enroll presents the token and proves the key. The answer's id and credential are checked for form.
func (c *Client) Enroll(ctx context.Context, r Request, key nkeys.KeyPair) (client.EnrollResponse, error) {
	public, err := key.PublicKey()
	if err != nil {
		return client.EnrollResponse{}, fmt.Errorf("nkey: %w", err)
	}
	challenge, err := c.challenge(ctx)
	if err != nil {
		return client.EnrollResponse{}, err
	}
	signature, err := sign(key, wire.EnrollProof(challenge, r.AgentType, r.ClusterSlug, r.Name))
	if err != nil {
		return client.EnrollResponse{}, err
	}
	answer, err := c.api.EnrollAgentWithResponse(ctx, client.EnrollRequest{
		AgentType: client.AgentType(r.AgentType), Name: r.Name, ClusterSlug: &r.ClusterSlug, ClusterName: &r.ClusterName,
		Version: r.Version, Capability: wire.CapabilityVersion, PublicKey: public, Challenge: challenge, Signature: signature,
	}, c.bearer)
	if err != nil {
		return client.EnrollResponse{}, unreachable(err)
	}
	if answer.JSON200 == nil {
		return client.EnrollResponse{}, refusal(answer.HTTPResponse, answer.ApplicationProblemJSONDefault)
	}
	got := *answer.JSON200
	if got.AgentID == "" || strings.ContainsAny(got.AgentID, ".*> \t\r\n") || got.Credential.Jwt == "" {
		return client.EnrollResponse{}, &Unreachable{Dependency: "console", Err: errors.New("its answer to the enrolment has no usable agent id or credential")}
	}
	return got, nil
}

// Renew fetches a fresh credential for an enrolled agent.
func (c *Client) Renew(ctx context.Context, agentID, version string, key nkeys.KeyPair) (client.Credential, error) {
	public, err := key.PublicKey()
	if err != nil {
		return client.Credential{}, fmt.Errorf("nkey: %w", err)
	}
	challenge, err := c.challenge(ctx)
	if err != nil {
		return client.Credential{}, err
	}
	signature, err := sign(key, wire.RenewProof(challenge, agentID))
	if err != nil {
		return client.Credential{}, err
	}
	answer, err := c.api.RenewCredentialWithResponse(ctx, agentID, client.RenewRequest{
		PublicKey: public, Challenge: challenge, Signature: signature, Version: version,
	})
	if err != nil {
		return client.Credential{}, unreachable(err)
	}
	if answer.JSON200 == nil {
		return client.Credential{}, refusal(answer.HTTPResponse, answer.ApplicationProblemJSONDefault)
	}
	if answer.JSON200.Jwt == "" || !answer.JSON200.ExpiresAt.After(answer.JSON200.IssuedAt) {
		return client.Credential{}, &Unreachable{Dependency: "console", Err: errors.New("its answer to the renewal has no usable credential")}
	}
	return *answer.JSON200, nil
}

// PostFindings hands over the findings of the self-check, so that the gates can show them.
func (c *Client) PostFindings(ctx context.Context, r Request, findings []client.Finding) error {
	answer, err := c.api.PostFindingsWithResponse(ctx, client.FindingsRequest{
		AgentType: client.AgentType(r.AgentType), Name: r.Name, ClusterSlug: &r.ClusterSlug, Version: r.Version, Findings: findings,
	}, c.bearer)
	if err != nil {
		return unreachable(err)
	}
	if answer.StatusCode()/100 != 2 {
		return refusal(answer.HTTPResponse, answer.ApplicationProblemJSONDefault)
	}
	return nil
}

// Challenge asks for a challenge and reports when console answered, by console's own clock: zero where
// the answer had no date. The self-check uses it to tell console from a login page.
func (c *Client) Challenge(ctx context.Context) (date time.Time, err error) {
	answer, err := c.api.CreateChallengeWithResponse(ctx)
	if err != nil {
		return time.Time{}, unreachable(err)
	}
	if parsed, err := http.ParseTime(answer.HTTPResponse.Header.Get("Date")); err == nil {
		date = parsed
	}
	if answer.JSON200 == nil || answer.JSON200.Challenge == "" {
		return date, refusal(answer.HTTPResponse, answer.ApplicationProblemJSONDefault)
	}
	return date, nil
}

func (c *Client) challenge(ctx context.Context) (string, error) {
	answer, err := c.api.CreateChallengeWithResponse(ctx)
	if err != nil {
		return "", unreachable(err)
	}
	if answer.JSON200 == nil || answer.JSON200.Challenge == "" {
		return "", refusal(answer.HTTPResponse, answer.ApplicationProblemJSONDefault)
	}
	return answer.JSON200.Challenge, nil
}

func (c *Client) bearer(_ context.Context, r *http.Request) error {
	r.Header.Set("Authorization", "Bearer "+c.token)
	return nil
}

func sign(key nkeys.KeyPair, text []byte) (string, error) {
	signature, err := key.Sign(text)
	if err != nil {
		return "", fmt.Errorf("sign with the nkey: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(signature), nil
}

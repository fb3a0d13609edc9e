package kubeapi

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// Timeout is how long the API server may take for one answer, its whole body included.
const Timeout = 30 * time.Second

// unansweredError says in our words what net/http words in several ways.
type unansweredError struct {
	request string
	cause   error
}

func (e unansweredError) Error() string {
	return fmt.Sprintf("the API server did not answer%s in full within %s: it hangs, is overloaded, or something between drops its packets", e.request, Timeout)
}

func (e unansweredError) Unwrap() error { return e.cause }

// Explain replaces the text of an error that a request without a deadline of its own ended with after [Timeout]; the
// error itself stays in the chain. Any other error, that of a connection or a TLS handshake which cannot be made
// included, comes back as it is.
func Explain(err error) error {
	timeout, ok := errors.AsType[net.Error](err)
	if !ok || !timeout.Timeout() {
		return err
	}
	// What net/http says of a handshake that takes more than ten seconds has no type of its own.
	if _, connecting := errors.AsType[*net.OpError](err); connecting || strings.Contains(err.Error(), "TLS handshake timeout") {
		return err
	}
	request := ""
	if e, ok := errors.AsType[*url.Error](err); ok {
		target, _, _ := strings.Cut(e.URL, "?")
		request = " " + strings.ToUpper(e.Op) + " " + target
	}
	return unansweredError{request: request, cause: err}
}

package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// Token lets those in who send it, as Authorization: Bearer and its value.
type Token struct {
	// Value is the secret. An empty one lets nobody in.
	Value string
	// Write allows everything; otherwise only what changes nothing is.
	Write bool
}

// digest is a token of which the server does not keep the value, so that all
// comparisons are of equal lengths.
type digest struct {
	sum   [sha256.Size]byte
	write bool
}

// SetTokens replaces the tokens, for all requests that come from now on. nil lets
// everybody do everything; no tokens, but not nil, let nobody in.
func (a *API) SetTokens(tokens []Token) {
	if tokens == nil {
		a.tokens.Store(nil)
		return
	}
	all := make([]digest, 0, len(tokens))
	for _, t := range tokens {
		if t.Value != "" {
			all = append(all, digest{sha256.Sum256([]byte(t.Value)), t.Write})
		}
	}
	a.tokens.Store(&all)
}

const challengeHeader = "WWW-Authenticate"

// authorize refuses a request whose token does not allow the operation. How long
// it takes says nothing about the tokens.
func (a *API) authorize(op *operation, r *http.Request) error {
	known := a.tokens.Load()
	if known == nil || op.open {
		return nil
	}
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return &failure{
			code: CodeUnauthorized, detail: "the server wants a token: send Authorization: Bearer and its value",
			header: [2]string{challengeHeader, `Bearer realm="twinsrv"`},
		}
	}
	scheme, value, _ := strings.Cut(values[0], " ")
	sum := sha256.Sum256([]byte(strings.TrimLeft(value, " ")))
	found, write := 0, 0
	for _, d := range *known {
		same := subtle.ConstantTimeCompare(sum[:], d.sum[:])
		found |= same
		if d.write {
			write |= same
		}
	}
	switch {
	case len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || found == 0:
		return &failure{
			code: CodeUnauthorized, detail: "the server does not know the token",
			header: [2]string{challengeHeader, `Bearer realm="twinsrv", error="invalid_token"`},
		}
	case op.writes() && write == 0:
		return &failure{
			code: CodeReadOnlyToken, detail: "the token may only read",
			header: [2]string{challengeHeader, `Bearer realm="twinsrv", error="insufficient_scope", scope="write"`},
		}
	}
	return nil
}

// writes reports whether the operation may change something.
func (op *operation) writes() bool { return op.method != http.MethodGet && !op.reads }

package httpapi

import (
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	preferHeader  = "Prefer"
	appliedHeader = "Preference-Applied"
)

// preferences are what a request's Prefer headers ask for (RFC 7240), as far as
// this server knows it. Others are passed over, as the RFC says.
type preferences struct {
	async bool // respond-async
	waits bool // wait=N
	wait  time.Duration
}

func (c *call) preferences() (p preferences, err error) {
	for _, header := range c.r.Header.Values(preferHeader) {
		for one := range strings.SplitSeq(header, ",") {
			one, _, _ = strings.Cut(one, ";") // no preference here has parameters
			name, value, _ := strings.Cut(one, "=")
			value = strings.Trim(strings.TrimSpace(value), `"`)
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "respond-async":
				p.async = true
			case "wait":
				if p.waits {
					continue // the first one counts
				}
				seconds, err := strconv.ParseUint(value, 10, 31)
				if err != nil {
					return p, refuse(CodeBadPreference, "Prefer: wait is a number of seconds, such as wait=10")
				}
				p.waits, p.wait = true, time.Duration(min(seconds, math.MaxInt32))*time.Second
			}
		}
	}
	return p, nil
}

// applied says, for the answer, that the wait was honoured.
func (p preferences) applied() string { return "wait=" + strconv.Itoa(int(p.wait/time.Second)) }

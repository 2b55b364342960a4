package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// guard refuses requests that a foreign page or a foreign name led here.
func (a *API) guard(r *http.Request) error {
	if !a.cfg.AnyHost && !a.ownHost(r.Host) {
		return refuse(CodeForbiddenHost, "the Host header names neither a loopback address nor a host that this server is configured for")
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || !strings.EqualFold(u.Host, r.Host) {
			return refuse(CodeForbiddenOrigin, "the request comes from a page of another origin")
		}
	}
	return nil
}

func (a *API) ownHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if name == "localhost" {
		return true
	}
	if ip, err := netip.ParseAddr(name); err == nil && ip.Unmap().IsLoopback() {
		return true
	}
	for _, own := range a.cfg.Hosts {
		if name != "" && strings.EqualFold(name, own) {
			return true
		}
	}
	return false
}

package httpapi

import "net/http"

// Health says whether the server serves, and on what.
type Health struct {
	Status string `json:"status"`
	// Store is the kind of store that everything is kept in, such as "bolt".
	Store string `json:"store,omitempty"`
	Pods  int    `json:"pods"`
	// Active is how many entities are in memory.
	Active int `json:"active"`
	// Quarantined is how many were found to be unreadable.
	Quarantined int `json:"quarantined"`
}

// getHealth answers 503 while the store takes no writes.
func getHealth(c *call) error {
	pods := c.api.pods
	if err := pods.Committer().Down(); err != nil {
		return refuse(CodeStoreUnavailable, "the store failed and is being reopened; reads go on where they can")
	}
	return c.json(http.StatusOK, Health{
		Status: "ok", Store: c.api.cfg.Store, Pods: len(pods.All()), Active: pods.Active(), Quarantined: len(pods.Quarantined()),
	})
}

func getOpenAPI(c *call) error {
	return c.raw(http.StatusOK, c.api.document)
}

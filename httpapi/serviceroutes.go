package httpapi

import "net/http"

// Health says whether the server serves.
type Health struct {
	Status string `json:"status"`
}

// getHealth answers 503 while the store takes no writes.
func getHealth(c *call) error {
	if err := c.api.pods.Committer().Down(); err != nil {
		return refuse(CodeStoreUnavailable, "the store failed and is being reopened; reads go on where they can")
	}
	return c.json(http.StatusOK, Health{Status: "ok"})
}

func getOpenAPI(c *call) error {
	return c.raw(http.StatusOK, c.api.document)
}

package httpapi

// getExplorer answers with the explorer's page or one of its files.
func getExplorer(c *call) error {
	c.api.explorer.ServeHTTP(c.w, c.r)
	return nil
}

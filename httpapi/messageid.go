package httpapi

import "github.com/twinsrv/twinsrv/entity"

// messageIDHeader names a message, so that a repeat of it has no second effect
// and gets the first one's answer.
const messageIDHeader = "Idempotency-Key"

// identify gives a message the id that the request has, if it has one. An id
// belongs to the entity: others do not know it.
func (c *call) identify(m *entity.Message) error {
	ids := c.r.Header.Values(messageIDHeader)
	if len(ids) == 0 {
		return nil
	}
	if len(ids) > 1 || m.SetID(ids[0]) != nil {
		return badMessageID()
	}
	return nil
}

func badMessageID() error {
	return refuse(CodeBadMessageID, messageIDHeader+" is one text of 1 to 200 bytes of UTF-8, made by the client for this one message")
}

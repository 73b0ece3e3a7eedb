// Package rueidis makes Redlatch clients on connections of a rueidis client, for one server or a
// cluster, or with the options of a rueidis client, for the master that Sentinels name:
//
//	rdb, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addrs})
//	if err != nil {
//		return err
//	}
//	client, err := latchrueidis.New(ctx, rdb)
//
// The rueidis client dials, authenticates and encrypts. Redlatch takes dedicated connections from it:
// BlockingPoolSize must leave room for four to each node. Other commands of the client do not delay
// renewals, and no call runs twice, whatever its settings for retries are. The README has the details
// of retries, deadlines, Sentinels and clusters.
package rueidis

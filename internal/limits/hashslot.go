package limits

import "strings"

// slots is the number of hash slots in Redis Cluster.
const slots = 16384

// HashSlot returns the hash slot of a key or shard channel: the CRC16 of its hash tag, or of the
// whole key if it has none.
func HashSlot(key string) int { return int(crc16(HashTag(key))) % slots }

// HashTag returns the part of key that Redis hashes: between the first '{' and the next '}', or
// the whole key if there is no such pair or nothing inside.
func HashTag(key string) string {
	open := strings.IndexByte(key, '{')
	if open < 0 {
		return key
	}
	length := strings.IndexByte(key[open+1:], '}')
	if length <= 0 {
		return key
	}
	return key[open+1 : open+1+length]
}

// crc16 is the XMODEM variant: polynomial 0x1021, initial value 0, no reflection.
func crc16(text string) uint16 {
	var crc uint16
	for i := range len(text) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^text[i]]
	}
	return crc
}

var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
		table[i] = crc
	}
	return table
}()

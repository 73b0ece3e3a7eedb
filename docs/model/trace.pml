/*
 * Included by plain.pml with -DTRACE. A visible step happens only if it is the next step of a trace. Hidden steps and
 * time may come between visible steps. The file traces has the traces: four bytes for each step, and four zeros at the
 * end. The file verdicts gets a number for each trace: -1 if the model accepts it, the index of the first step that the
 * model rejects, -2 if the trace was not searched because a later one was rejected, or -3 if the search took too long.
 */
#define OWN 3
#define LEASE 3
mtype = { not_sent, confirmed, deleted, lost, released, releasing, renewed, renewing, listening, gap, received, gave_up,
	refused, granted, executed, sent };	/* 16 to 1; an attempt that was not sent is not a step of the model */

c_decl {
	static unsigned char text[1 << 24], *steps[1 << 16];
	static int count, far[1 << 16], moves;	/* far: the verdicts */
	\#define GOES_ON goes_on()	/* Spin rejects a call in c_expr */
}
short chosen, at;
byte what_, caller_, number_, value_;	/* the next step */
byte busy;	/* set of callers that must make an attempt before time passes */
byte num[OWNERS], last[CALLERS];	/* the owners' numbers */
bool lose_acquire[CALLERS], lose_renew[CALLERS];	/* the caller will not get the last call's reply */

c_code {
	static void report(void) {
		FILE *f = fopen("verdicts", "w");
		for (int i = 0; i < count; i++)
			fprintf(f, "%d\n", far[i]);
		fclose(f);
	}

	static void load(void) {
		FILE *f = fopen("traces", "rb");
		unsigned char *s = text, *end = text + fread(text, 1, sizeof text, f);
		for (; s < end; s += 4) {
			steps[count++] = s;
			while (*s)
				s += 4;
		}
		atexit(report);
	}

	/* Finds the next step of the chosen trace. */
	static void look(void) {
		unsigned char *s = steps[now.chosen] + 4 * now.at;
		int *verdict = &far[now.chosen];
		now.what_ = s[0]; now.caller_ = s[1]; now.number_ = s[2]; now.value_ = s[3];
		if (!now.at) {
			moves = 0;
			if (now.chosen + 1 < count && verdict[1] != -1 && verdict[1] != -3)
				*verdict = -2;
		}
		if (*verdict >= 0)
			*verdict = !*s ? -1 : now.at > *verdict ? now.at : *verdict;
	}

	/* Most traces take a few thousand moves. */
	static int goes_on(void) {
		if (far[now.chosen] >= 0 && moves++ == 2000000)
			far[now.chosen] = -3;
		return far[now.chosen] >= 0;
	}
}

inline pass() {
	if
	:: what_ == received || what_ == gap || what_ == listening -> busy = busy | 1 << caller_
	:: what_ == sent || what_ == not_sent || what_ == gave_up -> busy = busy & ~(1 << caller_)
	:: else
	fi;
	c_code { now.at++; look(); }
}

#define EV_CALLER(condition, step, c) (condition) && what_ == step && caller_ == c -> pass()
#define EV(condition, step, o, value) (condition) && what_ == step && caller_ == CALLER(o) && number_ == num[o] && (step == renewing || value_ == value) -> \
	lose_renew[CALLER(o)] = (step == renewing -> value_ : lose_renew[CALLER(o)]); pass()
#define EV_SENT(o) what_ == sent && caller_ == CALLER(o) && (number_ == num[o] || num[o] == 0 && number_ > last[CALLER(o)]) -> \
	num[o] = number_; last[CALLER(o)] = number_; lose_acquire[CALLER(o)] = value_; pass()
/* Hidden steps of a caller commute with other callers' steps and with time, so they can wait until its next step. */
#define HIDES(c) (what_ && caller_ == c)
#define LOSES(call, c) lose_##call[c]
#define TRACED true
#define OVERDUE(c) (hold[c] && left[c] == 0)
#define TIME_PASSES (!busy && (what_ == lost || what_ == renewing || what_ == executed && value_) \
	&& !OVERDUE(0) && !OVERDUE(1) && !OVERDUE(2))
#define FRESH(o) num[o] = 0
#define RECEIVED(c) :: atomic { EV_CALLER(link[c] == MESSAGE && !(busy >> c & 1), received, c); link[c] = LISTENS; goto listen } \
	:: atomic { EV_CALLER(!(busy >> c & 1), gap, c); goto listen }
#define GAP(c) :: atomic { EV_CALLER(true, gap, c); goto listen }
#define BEGIN c_code { load(); }; do :: c_expr { now.chosen + 1 < count } -> chosen++ :: break od; c_code { look(); }
#define NOT_SENT :: atomic { EV_CALLER(true, not_sent, caller_) }

never { do :: c_expr { GOES_ON } od }

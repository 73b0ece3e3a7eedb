// Keeps the page up to date: a stream says that something has changed, then the page is loaded
// again and what differs is put into place, so that focus and scroll position stay.
"use strict";

(() => {
	const stream = document.body.dataset.stream;
	const pause = document.getElementById("pause");
	const link = document.getElementById("link");
	let source = null;
	let retry = 0;
	let loading = false;
	let again = false;
	let paused = false;

	const say = (text) => {
		if (link.textContent !== text) link.textContent = text;
	};

	// What a viewer has opened, typed or chosen stays as it is.
	const callbacks = {
		beforeAttributeUpdated: (name, node) => !(name === "open" && node.localName === "details"),
		beforeNodeMorphed: (node) => !(node.nodeType === 1 && node.matches("input, select, textarea")),
	};

	const lengthOf = (node) => (node.nodeType === 1 ? node.childNodes.length : node.nodeValue.length);

	// keep returns what gives the focus and the selected text back when nodes were moved.
	const keep = () => {
		const focus = document.activeElement;
		const selection = getSelection();
		const { anchorNode, anchorOffset, focusNode, focusOffset, isCollapsed } = selection;
		const text = String(selection);
		return () => {
			if (focus !== document.activeElement && focus.isConnected) focus.focus({ preventScroll: true });
			if (isCollapsed || String(selection) === text || !anchorNode.isConnected || !focusNode.isConnected) return;
			selection.setBaseAndExtent(anchorNode, Math.min(anchorOffset, lengthOf(anchorNode)), focusNode, Math.min(focusOffset, lengthOf(focusNode)));
		};
	};

	const update = (fresh) => {
		const restore = keep();
		Idiomorph.morph(document.getElementById("live"), fresh, { callbacks });
		restore();
	};

	const load = () => {
		if (loading) {
			again = true;
			return;
		}
		loading = true;
		const request = new XMLHttpRequest();
		request.open("GET", location.href);
		request.responseType = "document";
		request.timeout = 20000;
		request.onloadend = () => {
			loading = false;
			const fresh = request.response && request.response.getElementById("live");
			if ([401, 403, 429].includes(request.status)) { // each attempt may count as a wrong password
				close();
				say("refused: load the page again");
			} else if (!fresh) {
				say("no answer");
			} else if (!paused) {
				update(fresh);
				say(source ? "live" : "every 15 s");
			}
			if (again) {
				again = false;
				load();
			}
		};
		request.send();
	};

	const close = () => {
		if (source) source.close();
		source = null;
		clearTimeout(retry);
	};

	// A browser tries again when a connection ends, but not when a stream is refused: by a proxy,
	// or since there are too many. The page is loaded now and then in its place.
	const broken = () => {
		if (source.readyState !== EventSource.CLOSED) {
			say("reconnecting …");
			return;
		}
		close();
		retry = setTimeout(connect, 15000);
		load();
	};

	// A browser has few connections to one host: only pages that are seen have one.
	const connect = () => {
		close();
		if (paused || document.hidden) return;
		source = new EventSource(stream);
		source.addEventListener("change", load);
		source.onerror = broken;
	};

	// On a small screen the filter is folded. Without this script it stays open.
	const filter = document.getElementById("filter");
	const small = matchMedia("(max-width: 760px)");
	const fold = () => {
		if (filter) filter.open = !small.matches;
	};
	small.addEventListener("change", fold);
	fold();

	pause.hidden = false;
	pause.addEventListener("click", () => {
		paused = !paused;
		pause.setAttribute("aria-pressed", String(paused));
		pause.textContent = paused ? "Resume" : "Pause";
		say(paused ? "paused" : "connecting …");
		connect();
	});
	document.addEventListener("visibilitychange", connect);
	addEventListener("pagehide", close);
	addEventListener("pageshow", (event) => {
		if (event.persisted) connect();
	});
	say("connecting …");
	connect();
})();

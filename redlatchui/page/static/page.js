// Keeps the page up to date: a stream says that something has changed, then the page is loaded
// again and what differs is put into place, so that focus and scroll position stay.
"use strict";

(() => {
	const stream = document.body.dataset.stream;
	const pause = document.getElementById("pause");
	const link = document.getElementById("link");
	let source = null;
	let loading = false;
	let again = false;
	let paused = false;

	const say = (text) => {
		if (link.textContent !== text) link.textContent = text;
	};

	const keyOf = (node) => (node.nodeType === 1 ? node.id || node.dataset.key || "" : "");

	const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

	// morph makes the node old look like the node fresh, which is of another document.
	const morph = (old, fresh) => {
		if (old.nodeType !== 1) {
			if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
			return;
		}
		for (const { name } of [...old.attributes]) {
			if (!fresh.hasAttribute(name)) old.removeAttribute(name);
		}
		for (const { name, value } of [...fresh.attributes]) {
			if (old.getAttribute(name) !== value) old.setAttribute(name, value);
		}
		morphChildren(old, fresh);
	};

	const morphChildren = (old, fresh) => {
		const keyed = new Map();
		for (const child of old.children) {
			if (keyOf(child)) keyed.set(keyOf(child), child);
		}
		let at = old.firstChild;
		for (const wanted of [...fresh.childNodes]) {
			const kept = keyed.get(keyOf(wanted));
			if (kept && kept !== at && alike(kept, wanted)) {
				old.insertBefore(kept, at);
				at = kept;
			}
			if (at && alike(at, wanted)) {
				morph(at, wanted);
				at = at.nextSibling;
			} else {
				old.insertBefore(document.importNode(wanted, true), at);
			}
		}
		while (at) {
			const next = at.nextSibling;
			at.remove();
			at = next;
		}
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
			if (fresh && !paused) {
				morph(document.getElementById("live"), fresh);
				say("live");
			} else if (!fresh) {
				say("no answer");
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
	};

	// A browser has few connections to one host: only pages that are seen have one.
	const connect = () => {
		close();
		if (paused || document.hidden) return;
		source = new EventSource(stream);
		source.addEventListener("change", load);
		source.onerror = () => say("reconnecting …");
	};

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

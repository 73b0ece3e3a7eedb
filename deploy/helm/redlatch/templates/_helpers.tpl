{{/* The prefix of all names; with "-exporter" it fits into 63 characters. */}}
{{- define "redlatch.name" -}}
{{- if contains "redlatch" .Release.Name }}{{ .Release.Name }}{{ else }}{{ printf "%s-redlatch" .Release.Name | trunc 53 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* The templates below take a dict with root, the context of the chart, and component. */}}
{{- define "redlatch.labels" -}}
app.kubernetes.io/name: redlatch
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "redlatch.metadata" -}}
metadata:
  name: {{ include "redlatch.name" .root }}-{{ .component }}
  labels:
    {{- include "redlatch.labels" . | nindent 4 }}
{{- end }}

{{/* Also takes args, those of the component; secrets, a list of dicts of name, secret, key and path; port, a dict of
name and number, empty if no other pod may connect; and probe, of this port. */}}
{{- define "redlatch.deployment" -}}
{{- $values := .root.Values }}
{{- if regexMatch "://[^/]*:[^/]*@|[?&]sentinel_password=" $values.redis.url }}
{{- fail "redis.url contains a password: put it into the Secret redis.existingSecret; the chart does not support sentinel_password" }}
{{- end }}
{{- if and (eq $values.redis.user "onlooker") (not $values.redis.existingSecret) }}
{{- fail "redis.user needs redis.existingSecret, a Secret with its password; for the default user without a password, set both to \"\"" }}
{{- end }}
{{- $secrets := .secrets }}
{{- $args := concat (list .component) .args }}
{{- with $values.redis.user }}{{ $args = append $args (printf "--user=%s" .) }}{{ end }}
{{- with $values.redis.existingSecret }}
{{- $args = append $args "--password-file=/etc/redlatch/redis/password" }}
{{- $secrets = append $secrets (dict "name" "redis" "secret" . "key" $values.redis.existingSecretKey "path" "password") }}
{{- end }}
{{- with $values.redis.caSecret }}
{{- $args = append $args "--tls-ca=/etc/redlatch/ca/ca.crt" }}
{{- $secrets = append $secrets (dict "name" "ca" "secret" . "key" "ca.crt" "path" "ca.crt") }}
{{- end }}
{{- $args = concat $args $values.args }}
{{- with $values.pattern }}{{ $args = concat $args (list "--" .) }}{{ end }}
{{- /* Kubernetes expands $(NAME) in arguments and variables. */}}
{{- $escaped := list }}
{{- range $args }}{{ $escaped = append $escaped (replace "$" "$$" .) }}{{ end }}
apiVersion: apps/v1
kind: Deployment
{{ include "redlatch.metadata" . }}
spec:
  replicas: 1
  selector:
    matchLabels:
      {{- include "redlatch.labels" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "redlatch.labels" . | nindent 8 }}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile:
          type: RuntimeDefault
      {{- with $values.podSpec }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      containers:
        - name: {{ .component }}
          image: "{{ $values.image.repository }}:{{ $values.image.tag | default .root.Chart.AppVersion }}"
          args:
            {{- toYaml $escaped | nindent 12 }}
          env:
            {{- toYaml (list (dict "name" "REDIS_URL" "value" (replace "$" "$$" $values.redis.url))) | nindent 12 }}
          {{- with .port }}
          ports:
            - name: {{ .name }}
              containerPort: {{ .number }}
          {{- end }}
          {{- with .probe }}
          readinessProbe:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          resources:
            {{- toYaml $values.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          {{- with $secrets }}
          volumeMounts:
            {{- range . }}
            - name: {{ .name }}
              mountPath: /etc/redlatch/{{ .name }}
              readOnly: true
            {{- end }}
      volumes:
        {{- range . }}
        - name: {{ .name }}
          secret:
            secretName: {{ .secret | quote }}
            defaultMode: 288 # 0440
            items:
              - key: {{ .key | quote }}
                path: {{ .path }}
        {{- end }}
          {{- end }}
{{- end }}

{{- define "redlatch.service" -}}
apiVersion: v1
kind: Service
{{ include "redlatch.metadata" . }}
spec:
  {{- if eq .component "exporter" }}
  publishNotReadyAddresses: true # redlatch_exporter_up 0 reports that Redis is down
  {{- end }}
  selector:
    {{- include "redlatch.labels" . | nindent 4 }}
  ports:
    - name: {{ .port.name }}
      port: {{ .port.number }}
      targetPort: {{ .port.name }}
{{- end }}

{{- define "redlatch.networkPolicy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
{{ include "redlatch.metadata" . }}
spec:
  podSelector:
    matchLabels:
      {{- include "redlatch.labels" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  {{- with .port }}
  ingress:
    - ports:
        - port: {{ .number }}
  {{- end }}
  egress:
    - ports: # DNS
        - port: 53
          protocol: UDP
        - port: 53
          protocol: TCP
    - ports: # Redis
        {{- range .root.Values.networkPolicy.redisPorts }}
        - port: {{ . | int }}
        {{- end }}
{{- end }}

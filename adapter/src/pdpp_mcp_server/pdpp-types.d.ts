// Written by `make docs` from the structs that results are encoded from.
/** `structuredContent` of a tool: its result, or an error. */
export type Answer<Tool extends keyof Results> = Results[Tool] | { error: ToolError };
/** A page as a tool shows it: what all its rows have alike stands once in `page`. */
export type Lean<Envelope extends { data: unknown[] }> = Omit<Envelope, "data" | "links"> & {
  data: (Partial<Envelope["data"][number]> & { id: string; data?: { [name: string]: unknown } })[];
  links: { self: string; next?: string | null };
};
export interface NextCall {
  tool: keyof Arguments;
  arguments: { [name: string]: unknown };
  why?: string;
}
export interface LadderEntry {
  id?: string;
  field_path: string;
  kind: "text" | "json" | "binary";
  status: "truncated" | "omitted" | "binary";
  read?: NextCall;
  uri?: string;
  [name: string]: unknown;
}
export type Schema = {
  object: "schema";
  bearer: Bearer;
  connector_count: number;
  stream_count: number;
  unavailable_connections: UnavailableConnection[];
  unavailable_connection_count?: number;
  connectors: SchemaConnector[];
  detail?: "compact";
  today?: Today;
  links: SelfLink;
  meta: Meta;
};
export type Bearer = {
  token_kind: BearerTokenKind;
  scope: string;
  grant_id?: string;
  grant_package_id?: string;
  client_id: string | null;
  grant_ids?: string[];
  expires_at?: string | null;
  access_mode?: string;
  purpose_code?: string;
  purpose_description?: string;
  manage_url?: string;
};
export type BearerTokenKind = "client" | "mcp_package" | "owner" | "collector";
export type UnavailableConnection = {
  connection_id?: string;
  connector_key?: string;
  grant_id?: string;
  stream?: string;
  display_name?: string;
  reason: string;
  next_step: UnavailableConnectionNextStep;
};
export type UnavailableConnectionNextStep = "reapprove" | "choose_another";
export type SchemaConnector = {
  object: "connector";
  source: ShownSource;
  connector_key: string;
  connector_id: string;
  display_name: string;
  declaration_version: string;
  stream_count: number;
  grant_id?: string;
  streams: (StreamMetadata | CompactStream)[];
  granted_connections?: GrantedConnection[];
};
export type ShownSource = {
  kind: ShownSourceKind;
  id: string;
};
export type ShownSourceKind = "connector" | "provider_native";
export type StreamMetadata = {
  object: "stream_metadata";
  name: string;
  display: StreamLabel;
  primary_key: string[];
  cursor_field: string | null;
  consent_time_field: string | null;
  semantics: StreamMetadataSemantics;
  schema: {
    [name: string]: unknown;
  };
  selection: {
    [name: string]: unknown;
  };
  views: {
    [name: string]: unknown;
  }[];
  relationships: {
    [name: string]: unknown;
  }[];
  query: {
    [name: string]: unknown;
  };
  sort: SortCapability;
  count: string[];
  search: SearchCapability;
  aggregate: AggregateCapability;
  limits: PageLimits;
  freshness: Freshness;
  constraints: Constraints;
  field_capabilities: {
    [name: string]: ShownField;
  };
  expand_capabilities: ExpandCapability[];
  granted_connections: GrantedConnection[];
};
export type StreamLabel = {
  label: string;
  detail?: string;
};
export type StreamMetadataSemantics = "mutable_state" | "append_only";
export type SortCapability = {
  fields: string[];
  default: string | null;
};
export type SearchCapability = {
  modes: string[];
  lexical_fields: string[];
  semantic_fields: string[];
  embedded_percent?: number;
};
export type AggregateCapability = {
  metrics: string[];
};
export type PageLimits = {
  default_limit: number;
  max_limit: number;
};
export type Freshness = {
  status: FreshnessStatus;
  captured_at: string | null;
  last_attempted_at: string | null;
};
export type FreshnessStatus = "current" | "stale" | "unknown";
export type Constraints = {
  time_constraint: TimeBounds | null;
  resource_count: number | null;
  only?: LimitedField[];
  further_limits?: boolean;
};
export type TimeBounds = {
  field: string;
  since?: string;
  until?: string;
};
export type LimitedField = {
  field: string;
  value_count: number;
};
export type ShownField = {
  type?: string;
  role?: string;
  schema: {
    [name: string]: unknown;
  } | boolean;
  granted: boolean;
  exact_filter: Capability;
  range_filter: Capability;
  sort: Capability;
  lexical_search: Capability;
  semantic_search: Capability;
  aggregation: {
    [name: string]: Capability;
  };
};
export type Capability = {
  declared: boolean;
  usable: boolean;
  reason?: string;
  operators?: string[];
  caseless?: true;
};
export type ExpandCapability = {
  name: string;
  stream: string;
  target_stream: string;
  cardinality: ExpandCapabilityCardinality;
  granted: boolean;
  usable: boolean;
  foreign_key: string;
  child_parent_key_field?: string;
  foreign_key_on: ExpandCapabilityForeignKeyOn;
  default_limit?: number;
  max_limit?: number;
  reason?: string;
};
export type ExpandCapabilityCardinality = "has_one" | "has_many";
export type ExpandCapabilityForeignKeyOn = "target" | "self" | "both";
export type GrantedConnection = {
  connection_id: string;
  display_name?: string;
  grant_id?: string;
};
export type CompactStream = {
  name: string;
  display_name?: string;
  primary_key: string[];
  cursor_field: string | null;
  consent_time_field: string | null;
  sort: SortCapability;
  count: string[];
  views?: CompactView[];
  search: SearchCapability;
  aggregate: AggregateCapability;
  limits: PageLimits;
  field_capabilities?: {
    [name: string]: string;
  };
  expand_capabilities?: ExpandCapability[];
  granted_connections?: GrantedConnection[];
  constraints?: Constraints;
  fields_left_out?: number;
  visible?: Glance;
  freshness?: Freshness;
  reduced?: true;
};
export type CompactView = {
  id: string;
  fields: string[];
};
export type Glance = {
  records: number;
  more?: true;
  time_field?: string;
  earliest?: string;
  latest?: string;
  collected_at?: string;
};
export type Today = {
  date: string;
  time_zone: string;
};
export type SelfLink = {
  self: string;
};
export type Meta = {
  count: Uncounted | Counted;
  warnings: Warning[];
  window?: {
    [name: string]: unknown;
  };
  count_accuracy?: string;
  ignored_words?: string[];
  recall?: {
    [name: string]: unknown;
  };
  source_mix?: {
    [name: string]: unknown;
  }[];
  package?: {
    [name: string]: unknown;
  };
  freshness?: Freshness;
  unavailable_connections?: UnavailableConnection[];
  unavailable_connection_count?: number;
  empty?: EmptyAnswer;
  near?: (NearValue | NearWord)[];
  units?: {
    [name: string]: string;
  };
  relaxed?: RelaxedSearch;
  time_zone?: string;
  ranged_by?: string;
};
export type Uncounted = {
  kind: "none";
};
export type Counted = {
  kind: CountedKind;
  value: number;
};
export type CountedKind = "exact" | "estimated";
export type Warning = {
  code: WarningCode;
  message: string;
  param?: string;
  field?: string;
  connection_id?: string;
  display_name?: string;
  detail?: {
    [name: string]: unknown;
  };
};
export type WarningCode = "limit_clamped" | "deprecated_alias_used" | "source_skipped_not_applicable" | "source_unavailable" | "partial_results" | "budget_low" | "damaged_record" | "shown_as_occurrence" | "first_times_only" | "outside_time_constraint" | "limited_access" | "mixed_currencies" | "mixed_units" | "units_unknown" | "without_value" | "newer_missing";
export type EmptyAnswer = {
  reason: EmptyAnswerReason;
  collected_at?: string;
};
export type EmptyAnswerReason = "nothing_matches" | "not_granted" | "not_collected_since";
export type NearValue = {
  field: string;
  value: string;
  count: number;
  twin?: true;
  listed?: true;
};
export type NearWord = {
  word: string;
  value: string;
  count: number;
  searched?: boolean;
};
export type RelaxedSearch = {
  words: number;
  exact_count: number;
  least?: number;
  absent?: string[];
  spelled?: string[];
};
export type RecordList = {
  object: "list";
  url: string;
  data: (Record | Tombstone)[];
  has_more: boolean;
  next_cursor?: string;
  next_changes_since?: string;
  links: PageLinks;
  meta: Meta;
};
export type Record = {
  object: "record";
  id: string;
  record_id: string;
  stream: string;
  data: {
    [name: string]: unknown;
  };
  emitted_at: string;
  when?: string;
  connection_id: string;
  connector_key: string;
  display_name?: string;
  grant_id?: string;
  expanded?: {
    [name: string]: Record | null | ChildList;
  };
};
export type ChildList = {
  object: "list";
  data: Record[];
  has_more: boolean;
  url?: string;
};
export type Tombstone = {
  object: "record";
  id: string;
  record_id: string;
  stream: string;
  deleted: true;
  deleted_at: string;
  left?: "filter";
  emitted_at: string;
  connection_id: string;
  connector_key: string;
  display_name?: string;
  grant_id?: string;
};
export type PageLinks = {
  self: string;
  next: string | null;
};
export type Timeline = {
  object: "list";
  url: string;
  data: TimelineEntry[];
  has_more: boolean;
  next_cursor?: string;
  links: PageLinks;
  meta: Meta;
};
export type TimelineEntry = {
  object: "timeline_entry";
  id: string;
  record_id: string;
  stream: string;
  data: TimelineData;
  connection_id: string;
  connector_key: string;
  display_name?: string;
  grant_id?: string;
};
export type TimelineData = {
  at: string;
  when?: string;
  author?: string;
  conversation?: string;
  title?: string;
  preview?: string;
};
export type Aggregation = {
  object: "aggregation";
  stream: string;
  metric: AggregationMetric;
  field: string | null;
  group_by: string | null;
  then_by?: string;
  group_by_time: string | null;
  granularity: string | null;
  time_zone: string | null;
  bin?: number;
  sort?: AggregationSort;
  approximate: false;
  filtered_record_count: number;
  value?: unknown;
  value_count?: number;
  unit?: string;
  group_count?: number;
  groups?: ShownGroup[];
  limit?: number;
  other_count?: number;
  other_value?: number | null;
  connection_id?: string;
  connector_key?: string;
  display_name?: string;
  grant_id?: string;
  links: SelfLink;
  meta: Meta;
};
export type AggregationMetric = "count" | "sum" | "min" | "max" | "count_distinct" | "avg" | "median" | "p10" | "p25" | "p75" | "p90" | "p95" | "p99";
export type AggregationSort = "key" | "-key" | "value" | "-value";
export type ShownGroup = {
  key: unknown;
  label?: string;
  until?: number | null;
  then?: unknown;
  then_label?: string;
  start?: string | null;
  count: number;
  value?: unknown;
  value_count?: number;
  unit?: string;
};
export type SearchResults = {
  object: "list";
  url: string;
  data: SearchResult[];
  has_more: boolean;
  next_cursor?: string;
  links: PageLinks;
  meta: Meta;
};
export type SearchResult = {
  object: "search_result";
  stream: string;
  id?: string;
  record_id: string;
  record_key?: string;
  connection_id: string;
  connector_key: string;
  display_name?: string;
  grant_id?: string;
  connector_id?: string;
  emitted_at: string;
  matched_fields: string[];
  record_url?: string;
  retrieval_mode: SearchResultRetrievalMode;
  snippet?: Snippet;
  evidence_excerpts: Excerpt[];
  title?: string;
  author?: string;
  conversation?: string;
  amount?: string;
  authored_at?: string;
  when?: string;
  parent?: ParentRecord;
  context?: ConversationContext;
  matched_words?: string[];
  duplicates?: number;
  retrieval_sources?: string[];
};
export type SearchResultRetrievalMode = "lexical" | "semantic" | "hybrid";
export type Snippet = {
  field: string;
  text: string;
};
export type Excerpt = {
  object?: "evidence_excerpt";
  field_path: string;
  preview_text: string;
  start_chars: number;
  match_ranges: number[][];
  total_chars: number;
  end_chars?: number;
  truncated?: boolean;
  provenance?: ExcerptProvenance;
};
export type ExcerptProvenance = "lexical_match" | "semantic_match";
export type ParentRecord = {
  stream: string;
  record_id: string;
};
export type ConversationContext = {
  before?: NeighbourRecord;
  after?: NeighbourRecord;
};
export type NeighbourRecord = {
  record_id: string;
  text?: string;
};
export type ToolError = {
  code: string;
  message: string;
  next_call?: NextCall;
  [name: string]: unknown;
};
export interface Arguments {
  schema: {
    stream?: string;
    connection_id?: string;
    detail?: "compact" | "full";
  };
  query_records: {
    stream?: string;
    connection_id?: string;
    limit?: number;
    cursor?: string;
    fields?: string[];
    view?: string;
    since?: string;
    until?: string;
    filter?: {
      [name: string]: string | number | boolean | {
        gte?: string | number;
        gt?: string | number;
        lte?: string | number;
        lt?: string | number;
        in?: (string | number | boolean)[];
        ne?: string | number | boolean;
        contains?: string;
        starts_with?: string;
        exists?: boolean;
      };
    };
    sort?: string;
    order?: "asc" | "desc";
    count?: "none" | "estimated" | "exact";
    expand?: string[];
    expand_limit?: {
      [name: string]: number;
    };
    changes_since?: string;
  };
  aggregate: {
    stream: string;
    connection_id?: string;
    metric: "count" | "sum" | "min" | "max" | "count_distinct" | "avg" | "median" | "p10" | "p25" | "p75" | "p90" | "p95" | "p99";
    field?: string;
    group_by?: string;
    then_by?: string;
    group_by_time?: string;
    granularity?: "minute" | "hour" | "day" | "week" | "month" | "quarter" | "year" | "hour_of_day" | "weekday";
    time_zone?: string;
    bin?: number;
    sort?: "key" | "-key" | "value" | "-value";
    query?: string;
    across?: "connections";
    limit?: number;
    filter?: {
      [name: string]: string | number | boolean | {
        gte?: string | number;
        gt?: string | number;
        lte?: string | number;
        lt?: string | number;
        in?: (string | number | boolean)[];
        ne?: string | number | boolean;
        contains?: string;
        starts_with?: string;
        exists?: boolean;
      };
    };
  };
  search: {
    query: string;
    q?: string;
    mode?: string;
    streams?: string[];
    connection_id?: string;
    limit?: number;
    cursor?: string;
    since?: string;
    until?: string;
    sort?: "relevance" | "newest" | "oldest";
    exact?: boolean;
    filter?: {
      [name: string]: string | number | boolean | {
        gte?: string | number;
        gt?: string | number;
        lte?: string | number;
        lt?: string | number;
        in?: (string | number | boolean)[];
        ne?: string | number | boolean;
        contains?: string;
        starts_with?: string;
        exists?: boolean;
      };
    };
  };
  fetch: {
    id: string;
    connection_id?: string;
    fields?: string[];
    expand?: string[];
    expand_limit?: {
      [name: string]: number;
    };
    as?: "image";
  };
  read_record_field: {
    id?: string;
    connection_id?: string;
    stream?: string;
    record_id?: string;
    field_path: string;
    cursor?: string;
    offset_chars?: number;
    limit_chars?: number;
    q?: string;
    before_chars?: number;
    after_chars?: number;
  };
}
export interface Results {
  schema: {
    data: Schema;
    warnings?: Warning[];
    next?: NextCall[];
  };
  query_records: {
    next?: NextCall[];
    warnings?: Warning[];
    record_ids?: string[];
    content_ladder?: LadderEntry[];
    notice?: string;
    page?: Partial<Record> & { id_prefix?: string; id_field?: string };
    data: Lean<RecordList> | Lean<Timeline>;
  };
  aggregate: {
    data: Aggregation;
    warnings?: Warning[];
    next?: NextCall[];
    notice?: string;
  };
  search: {
    page?: {
      [name: string]: unknown;
    };
    data: SearchResults;
    results: ({
      id: string;
      title: string;
      url: string;
      connection_id?: string | null;
      content_ladder?: LadderEntry[];
    })[];
    source_mix?: {
      [name: string]: unknown;
    }[];
    warnings?: Warning[];
    next?: NextCall[];
    notice?: string;
  };
  fetch: {
    id: string;
    title: string;
    text: string;
    url: string;
    metadata: {
      [name: string]: unknown;
    };
  };
  read_record_field: {
    record: {
      id: string;
      connection_id: string | null;
      stream: string;
      record_id: string;
    };
    field: {
      path: string;
      mime_type?: string;
      text_like: boolean;
      size_chars?: number;
      digest?: string;
    };
    window: {
      text: string;
      start_chars: number;
      end_chars: number;
      limit_chars: number;
      complete: boolean;
      next_cursor?: string | null;
      previous_cursor?: string | null;
      match?: {
        q: string;
        start_chars: number;
        end_chars: number;
      } | null;
    };
    resource?: {
      uri: string;
      next_uri?: string | null;
      previous_uri?: string | null;
    };
  };
}

// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// The files of a commit, as the hub lists them and as Python's `huggingface_hub` writes them to
/// `trees/COMMIT.json` of a repository's folder.
record HubTree(List<Entry> files) {
  private static final JsonFactory JSON = new JsonFactory();
  private static final int FORMAT = 1;
  private static final int MAX_FILES = 1_000_000;

  /// A file of a commit.
  ///
  /// @param path the file's path, with `/` between its parts
  /// @param size the size in bytes of the file in git, which is a pointer if the file is in large
  ///     file storage
  /// @param oid git's hash of the file in git
  /// @param sha256 the SHA-256 of a file in large file storage; null for other files
  /// @param largeSize the size in bytes of a file in large file storage; 0 for other files
  /// @param xet the file's name in the hub's newer storage (Xet); null if the file is not in it
  record Entry(
      String path,
      long size,
      String oid,
      @Nullable String sha256,
      long largeSize,
      @Nullable String xet) {
    HubVersion state() {
      return sha256 == null ? new HubVersion(oid, size) : new HubVersion(sha256, largeSize);
    }
  }

  HubTree {
    files =
        files.stream()
            .filter(entry -> HubName.isSafe(entry.path()) && HubFile.isEtag(entry.state().etag()))
            .sorted(Comparator.comparing(Entry::path))
            .toList();
  }

  /// Returns the file with this path.
  Optional<Entry> file(String path) {
    return files.stream().filter(entry -> entry.path().equals(path)).findFirst();
  }

  /// Reads the commit from the hub's answer about a revision; empty if the answer has none.
  static String sha(HubName name, String answer) {
    return parsed(
        name,
        answer,
        json -> {
          String sha = "";
          require(json.nextToken() == JsonToken.START_OBJECT);
          while (json.nextToken() == JsonToken.FIELD_NAME) {
            boolean wanted = json.currentName().equals("sha");
            JsonToken value = json.nextToken();
            if (wanted && value == JsonToken.VALUE_STRING) {
              sha = json.getText();
            }
            json.skipChildren();
          }
          return sha;
        });
  }

  /// Reads one page of the hub's list.
  ///
  /// @param entries the entries of the pages before, to which this page's entries are added
  static void addPage(HubName name, String answer, List<Entry> entries) {
    List<Entry> _ =
        parsed(
            name,
            answer,
            json -> {
              require(json.nextToken() == JsonToken.START_ARRAY);
              while (json.nextToken() == JsonToken.START_OBJECT) {
                Map<String, String> values = new HashMap<>();
                flatten(json, "", values);
                if ("file".equals(values.get("type"))) {
                  entries.add(
                      entry(
                          values.getOrDefault("path", ""),
                          values,
                          "oid",
                          "lfs.oid",
                          "lfs.size",
                          "xetHash"));
                }
                require(entries.size() <= MAX_FILES);
              }
              return entries;
            });
  }

  /// Parses the text that [#text] or Python's library wrote.
  ///
  /// @throws IOException if the text is not such a list, or has a newer format
  static HubTree read(String text) throws IOException {
    List<Entry> entries = new ArrayList<>();
    int format = 0;
    try (JsonParser json = JSON.createParser(text)) {
      require(json.nextToken() == JsonToken.START_OBJECT);
      while (json.nextToken() == JsonToken.FIELD_NAME) {
        boolean files = json.currentName().equals("files");
        boolean version = json.currentName().equals("format_version");
        JsonToken value = json.nextToken();
        if (version) {
          format = json.getIntValue();
        }
        if (!files || value != JsonToken.START_OBJECT) {
          json.skipChildren();
          continue;
        }
        while (json.nextToken() == JsonToken.FIELD_NAME) {
          String path = json.currentName();
          require(json.nextToken() == JsonToken.START_OBJECT && entries.size() < MAX_FILES);
          Map<String, String> values = new HashMap<>();
          flatten(json, "", values);
          entries.add(entry(path, values, "blob_id", "lfs_sha256", "lfs_size", "xet_hash"));
        }
      }
    } catch (NumberFormatException e) {
      throw new IOException(e);
    }
    require(format == FORMAT);
    return new HubTree(entries);
  }

  /// Returns the list as the text that Python's library writes.
  String text() throws IOException {
    StringWriter text = new StringWriter();
    try (JsonGenerator json = JSON.createGenerator(text)) {
      json.writeStartObject();
      json.writeNumberField("format_version", FORMAT);
      json.writeObjectFieldStart("files");
      for (Entry entry : files) {
        json.writeObjectFieldStart(entry.path());
        json.writeNumberField("size", entry.size());
        json.writeStringField("blob_id", entry.oid());
        if (entry.sha256() != null) {
          json.writeStringField("lfs_sha256", entry.sha256());
          json.writeNumberField("lfs_size", entry.largeSize());
        }
        if (entry.xet() != null) {
          json.writeStringField("xet_hash", entry.xet());
        }
        json.writeEndObject();
      }
      json.writeEndObject();
      json.writeEndObject();
    }
    return text.toString();
  }

  private static Entry entry(
      String path, Map<String, String> values, String oid, String sha, String size, String xet) {
    return new Entry(
        path,
        size(values.getOrDefault("size", "")),
        values.getOrDefault(oid, ""),
        values.get(sha),
        values.get(sha) == null ? 0 : size(values.getOrDefault(size, "")),
        values.get(xet));
  }

  private static long size(String text) {
    long size = Long.parseLong(text);
    if (size < 0) {
      throw new NumberFormatException(text);
    }
    return size;
  }

  /// Reads the remaining fields of an object into `values`. A field of an inner object gets a name
  /// with dots.
  private static void flatten(JsonParser json, String before, Map<String, String> values)
      throws IOException {
    while (json.nextToken() == JsonToken.FIELD_NAME) {
      String name = before + json.currentName();
      JsonToken value = json.nextToken();
      if (value == JsonToken.START_OBJECT && before.isEmpty()) {
        flatten(json, name + ".", values);
      } else if (value.isScalarValue() && value != JsonToken.VALUE_NULL) {
        values.put(name, json.getText());
      } else {
        json.skipChildren();
      }
    }
  }

  private static void require(boolean right) throws IOException {
    if (!right) {
      throw new IOException("unexpected JSON");
    }
  }

  /// Reads an answer of the hub.
  private interface Reading<T> {
    T read(JsonParser json) throws IOException;
  }

  private static <T> T parsed(HubName name, String text, Reading<T> reading) {
    try (JsonParser json = JSON.createParser(text)) {
      return reading.read(json);
    } catch (IOException | NumberFormatException _) {
      throw HubErrors.wrong("GET", name, "the answer is not the JSON that a hub sends");
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.resident;

import com.fasterxml.jackson.core.JsonEncoding;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import dev.gantry.core.internal.plan.ExtentRequest;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;

/// What a server keeps in memory: what it tells a client, besides the descriptors.
///
/// @param version of the weights: 1, 2, … as they are replaced
/// @param gpu where the tensors lie, by its UUID, since an ordinal names another GPU in another process;
///     empty if they lie in the host's memory
/// @param entry the file to open; empty if they are opened as a folder
public record ResidentCatalogue(int version, String gpu, String entry, List<ResidentPart> parts) {
  private static final JsonFactory JSON = new JsonFactory();
  private static final String UNREADABLE =
      "the catalogue of resident weights is not as this version writes it";
  private static final Pattern UUID = Pattern.compile("GPU(-[0-9a-f]+){5}");

  public ResidentCatalogue {
    parts = List.copyOf(parts);
  }

  int descriptors() {
    return parts.stream().mapToInt(ResidentPart::descriptors).sum();
  }

  byte[] toJson() {
    ByteArrayOutputStream text = new ByteArrayOutputStream();
    try (JsonGenerator json = JSON.createGenerator(text, JsonEncoding.UTF8)) {
      json.writeStartObject();
      json.writeNumberField("version", version);
      json.writeStringField("gpu", gpu);
      json.writeStringField("entry", entry);
      json.writeArrayFieldStart("files");
      for (ResidentPart part : parts) {
        json.writeStartObject();
        json.writeStringField("name", part.name());
        json.writeNumberField("size", part.size());
        json.writeNumberField("host_phase", part.hostPhase());
        json.writeNumberField("device_from", part.deviceFrom());
        json.writeNumberField("device_to", part.deviceTo());
        json.writeNumberField("device_capacity", part.deviceCapacity());
        json.writeEndObject();
      }
      json.writeEndArray();
      json.writeEndObject();
    } catch (IOException e) {
      throw new UncheckedIOException("memory cannot be written to", e);
    }
    return text.toByteArray();
  }

  /// @throws IOException if it is none, or what it says cannot be
  static ResidentCatalogue parse(String text) throws IOException {
    int version = 0;
    String gpu = "";
    String entry = "";
    List<ResidentPart> parts = new ArrayList<>();
    try (JsonParser json = JSON.createParser(text)) {
      require(json.nextToken() == JsonToken.START_OBJECT);
      while (json.nextToken() == JsonToken.FIELD_NAME) {
        String name = json.currentName();
        json.nextToken();
        switch (name) {
          case "version" -> version = json.getIntValue();
          case "gpu" -> gpu = json.getText();
          case "entry" -> entry = json.getText();
          case "files" -> {
            require(json.currentToken() == JsonToken.START_ARRAY);
            while (json.nextToken() == JsonToken.START_OBJECT) {
              parts.add(part(json));
            }
          }
          default -> json.skipChildren();
        }
      }
    } catch (JsonProcessingException e) {
      throw new IOException(UNREADABLE, e);
    }
    require(version > 0 && (gpu.isEmpty() || UUID.matcher(gpu).matches()));
    Set<String> names = new HashSet<>();
    for (ResidentPart part : parts) {
      require(names.add(part.name()) && !(part.isOnDevice() && gpu.isEmpty()));
    }
    require(entry.isEmpty() || names.contains(entry));
    return new ResidentCatalogue(version, gpu, entry, parts);
  }

  private static ResidentPart part(JsonParser json) throws IOException {
    String called = "";
    long size = -1;
    long hostPhase = -1;
    long deviceFrom = -1;
    long deviceTo = -1;
    long deviceCapacity = -1;
    while (json.nextToken() == JsonToken.FIELD_NAME) {
      String name = json.currentName();
      json.nextToken();
      switch (name) {
        case "name" -> called = json.getText();
        case "size" -> size = json.getLongValue();
        case "host_phase" -> hostPhase = json.getLongValue();
        case "device_from" -> deviceFrom = json.getLongValue();
        case "device_to" -> deviceTo = json.getLongValue();
        case "device_capacity" -> deviceCapacity = json.getLongValue();
        default -> json.skipChildren();
      }
    }
    require(!called.isEmpty() && !called.contains("/"));
    require(hostPhase >= 0 && hostPhase < ExtentRequest.MAX_ALIGNMENT_BYTES);
    require(0 <= deviceFrom && deviceFrom <= deviceTo && deviceTo <= size);
    require(size <= Long.MAX_VALUE - hostPhase && deviceTo - deviceFrom <= deviceCapacity);
    return new ResidentPart(called, size, hostPhase, deviceFrom, deviceTo, deviceCapacity);
  }

  private static void require(boolean valid) throws IOException {
    if (!valid) {
      throw new IOException(UNREADABLE);
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.output;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.StreamWriteFeature;
import dev.gantry.core.TensorShape;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.Map;

/// Prints JSON documents.
public final class Json {
  /// Writes the document.
  @FunctionalInterface
  public interface Body {
    void write(JsonGenerator json) throws IOException;
  }

  private Json() {}

  /// Prints one document. It is complete or not there at all: malformed input leaves standard
  /// output empty.
  public static void print(PrintWriter out, Body body) {
    StringWriter text = new StringWriter();
    try (JsonGenerator json = new JsonFactory().createGenerator(text)) {
      json.useDefaultPrettyPrinter();
      body.write(json);
    } catch (IOException e) {
      throw new UncheckedIOException("a string cannot be written to", e);
    }
    out.println(text);
    out.flush();
  }

  /// Prints one JSON document as it is written: one that may be too long for memory, and whose
  /// writer knows already that it will come to its end.
  public static void stream(PrintWriter out, Body body) {
    try (JsonGenerator json =
        JsonFactory.builder()
            .disable(StreamWriteFeature.AUTO_CLOSE_TARGET)
            .build()
            .createGenerator(out)) {
      json.useDefaultPrettyPrinter();
      body.write(json);
    } catch (IOException e) {
      throw new UncheckedIOException("the document has no end", e);
    }
    out.println();
    out.flush();
  }

  /// The name and value of a field that says what dimensions something has.
  public static void writeShape(TensorShape shape, JsonGenerator json) throws IOException {
    json.writeArrayFieldStart("shape");
    for (long dimension : shape.toArray()) {
      json.writeNumber(dimension);
    }
    json.writeEndArray();
  }

  /// Notes as an object, in their order.
  public static void writeMetadata(Map<String, String> metadata, JsonGenerator json)
      throws IOException {
    json.writeObjectFieldStart("metadata");
    for (Map.Entry<String, String> note : metadata.entrySet()) {
      json.writeStringField(note.getKey(), note.getValue());
    }
    json.writeEndObject();
  }
}

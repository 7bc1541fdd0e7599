package dev.gantry.samples;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;

/// Prints one JSON document. It is complete or not there at all: malformed input leaves standard
/// output empty.
final class Json {
  /// Writes the document.
  @FunctionalInterface
  interface Body {
    void write(JsonGenerator json) throws IOException;
  }

  private Json() {}

  static void print(PrintWriter out, Body body) {
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
}

// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.json;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.exc.StreamConstraintsException;
import com.fasterxml.jackson.core.io.JsonEOFException;
import dev.gantry.core.GantryException;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.formats.spi.FileBytes;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Tells which rule of JSON a file breaks. Jackson's message becomes the detail; the kind is told from
/// where its parser stopped and the bytes there, since the message may change.
final class JsonFaults {
  /// How many bytes before the fault are looked at to tell its kind.
  private static final int TAIL_BYTES = 256;

  private static final Pattern TRAILING_COMMA = Pattern.compile(",[ \\t\\r\\n]*[\\]}]\\z");
  private static final Pattern ESCAPE =
      Pattern.compile("\\\\(u[0-9a-fA-F]{0,3})?.\\z", Pattern.DOTALL);

  /// Matches a malformed number where a value must begin: one with a leading zero, or one that lacks a
  /// digit at its end.
  private static final Pattern NUMBER =
      Pattern.compile(
          "[\\[,:][ \\t\\r\\n]*(-?0|(-|-?\\d+\\.|-?\\d+(\\.\\d+)?[eE][+-]?).?)\\z", Pattern.DOTALL);

  /// Matches the parts of Jackson's messages that only a caller of Jackson could use: settings, and
  /// positions in a nameless stream.
  private static final Pattern ADVICE =
      Pattern.compile(" \\([^(]*\\[Source.*|, from `[^`]*`|: enable `.*", Pattern.DOTALL);

  private final FileBytes source;
  private final long from;
  private final long to;
  private final JsonParser parser;
  private final Utf8Reader text;

  JsonFaults(FileBytes source, long from, long to, JsonParser parser, Utf8Reader text) {
    this.source = source;
    this.from = from;
    this.to = to;
    this.parser = parser;
    this.text = text;
  }

  MalformedFileException malformed(long offset, String kind, String detail) {
    return new MalformedFileException(source.file(), offset, kind, detail);
  }

  MalformedFileException unexpectedEnd(String detail) {
    return malformed(to, "unexpected-end", detail);
  }

  /// Returns Gantry's error for a `fault` that the parser has just thrown.
  ///
  /// @param inString whether it was reading a string that is a value
  GantryException of(IOException fault, boolean inString) {
    // In an object, the fault is in a name unless a name is the current token, since its value
    // comes next.
    boolean inName =
        parser.getParsingContext().inObject() && parser.currentToken() != JsonToken.FIELD_NAME;
    return switch (fault) {
      case JsonEOFException end -> unexpectedEnd(words(end));
      case StreamConstraintsException bound ->
          malformed(lastRead(), passed(inString || inName), words(bound));
      case JsonProcessingException syntax -> syntax(words(syntax), inString || inName);
      case IOException other -> FileErrors.of("read", source.file().toString(), other);
    };
  }

  /// Makes the error about anything that follows the end of the JSON.
  MalformedFileException trailing(long offset) {
    return malformed(offset, "trailing-characters", "more follows the end of the JSON");
  }

  /// The offset of the character that the parser read last.
  long lastRead() {
    return text.offset(Math.max(0, charactersRead() - 1));
  }

  private long charactersRead() {
    return parser.currentLocation().getCharOffset();
  }

  private String passed(boolean inText) {
    if (parser.getParsingContext().getNestingDepth() > JsonReader.MAX_DEPTH) {
      return "nesting-too-deep";
    }
    return inText ? "string-too-long" : "number-too-long";
  }

  private MalformedFileException syntax(String words, boolean inText) {
    long last = lastRead();
    long end = text.offset(charactersRead());
    String tail = tail(end);
    if (last == from && tail.equals("\uFEFF")) {
      return malformed(from, "byte-order-mark", "JSON must not begin with a byte order mark");
    }
    Matcher comma = TRAILING_COMMA.matcher(tail);
    if (comma.find()) {
      return malformed(end - tail.length() + comma.start(), "trailing-comma", words);
    }
    if (ESCAPE.matcher(tail).find()) {
      return malformed(last, "invalid-escape", words);
    }
    if (!inText && NUMBER.matcher(tail).find()) {
      return malformed(last, "invalid-number", words);
    }
    return malformed(
        last, endsWithControl(tail, inText) ? "control-character" : "invalid-json", words);
  }

  /// Whether the tail ends with a forbidden control character. Whitespace is forbidden only inside strings;
  /// elsewhere it may follow the fault.
  private static boolean endsWithControl(String tail, boolean inText) {
    char last = tail.isEmpty() ? ' ' : tail.charAt(tail.length() - 1);
    return last < ' ' && (inText || "\t\n\r".indexOf(last) < 0);
  }

  /// Returns the last bytes before `end`, as text.
  private String tail(long end) {
    int length = (int) Math.min(TAIL_BYTES, end - from);
    ByteBuffer bytes = ByteBuffer.allocate(length);
    source.readFully(bytes, end - length);
    return new String(bytes.array(), StandardCharsets.UTF_8);
  }

  private static String words(JsonProcessingException fault) {
    return ADVICE.matcher(fault.getOriginalMessage()).replaceAll("");
  }
}

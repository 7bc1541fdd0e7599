// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.json;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.core.exc.StreamConstraintsException;
import com.fasterxml.jackson.core.io.JsonEOFException;
import com.fasterxml.jackson.core.util.JsonRecyclerPools;
import dev.gantry.core.GantryException;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.formats.spi.FileBytes;
import java.io.ByteArrayInputStream;
import java.io.DataInput;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.OptionalInt;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// Reads strict JSON from a section of a file, value by value, and keeps no values. Jackson
/// parses the text; the errors are Gantry's own.
///
/// It accepts the same JSON as the safetensors reference (serde_json): strict UTF-8, no byte order mark, no
/// lone surrogates, nothing after the end. An error's offset is that of the byte that breaks a rule, or the
/// start of the value in question. Not thread-safe.
///
/// An object is read as `for (boolean more = json.beginObject(); more; more = json.nextMember()) {
/// json.memberName(); … }`, an array likewise.
public final class JsonReader {
  /// The deepest nesting of arrays and objects; serde_json refuses a depth of 128.
  public static final int MAX_DEPTH = 127;

  /// The longest string, so that no file can fill the heap with one token. Trainers' notes in
  /// `__metadata__` reach some megabytes.
  public static final int MAX_STRING_CHARACTERS = 16 * 1024 * 1024;

  /// The most entries of one file that a reader keeps: tensors, files, notes and the like. Each takes some
  /// hundred bytes of heap, however short it is in the file: a megabyte of text could become tens of
  /// megabytes.
  public static final int MAX_ENTRIES = 2_000_000;

  /// The most notes among these entries; a note can be shorter in the file than any other entry.
  public static final int MAX_NOTES = 100_000;

  /// The longest number, in characters. A number that fits 64 bits or a double needs fewer.
  private static final int MAX_NUMBER_CHARACTERS = 4096;

  /// A number with fewer digits than this is surely below the largest double.
  private static final int SURELY_FINITE_DIGITS = 300;

  /// Jackson's cache of names is off: a header's names are all different, and may be hostile. Callers bound
  /// the section's length, so the document needs no bound of its own.
  private static final JsonFactory JSON =
      JsonFactory.builder()
          .disable(JsonFactory.Feature.INTERN_FIELD_NAMES)
          .disable(JsonFactory.Feature.CANONICALIZE_FIELD_NAMES)
          .disable(StreamReadFeature.AUTO_CLOSE_SOURCE)
          .recyclerPool(JsonRecyclerPools.nonRecyclingPool())
          .streamReadConstraints(
              StreamReadConstraints.builder()
                  .maxNestingDepth(MAX_DEPTH)
                  .maxStringLength(MAX_STRING_CHARACTERS)
                  .maxNameLength(MAX_STRING_CHARACTERS)
                  .maxNumberLength(MAX_NUMBER_CHARACTERS)
                  .maxDocumentLength(-1)
                  .maxTokenCount(-1)
                  .build())
          .build();

  /// The kind of a JSON value.
  public enum Kind {
    OBJECT("an object"),
    ARRAY("an array"),
    STRING("a string"),
    NUMBER("a number"),
    BOOLEAN("true or false"),
    NULL("null");

    private final String words;

    Kind(String words) {
      this.words = words;
    }
  }

  /// Matches the parts of Jackson's messages that only a caller of Jackson could use: settings, and
  /// positions in a nameless stream.
  private static final Pattern ADVICE =
      Pattern.compile(" \\([^(]*\\[Source.*|, from `[^`]*`|: enable `.*", Pattern.DOTALL);

  private final FileBytes source;
  private final long end;
  private final JsonParser parser;
  private final Utf8Reader text;
  private int entries;
  private int notes;

  /// @param from the file offset of the section's first byte
  /// @param to the file offset just past its last byte
  public JsonReader(FileBytes source, long from, long to) {
    this.source = source;
    this.end = to;
    text = new Utf8Reader(source, from, to);
    try {
      parser = JSON.createParser(text);
    } catch (IOException e) {
      throw FileErrors.of("read", source.file().toString(), e);
    }
  }

  /// Reads a short text, so that Jackson's classes are loaded.
  public static void loadClasses() {
    byte[] text = "{\"a\":{\"b\":[0]}}".getBytes(StandardCharsets.UTF_8);
    try (JsonParser parser =
        JSON.createParser((DataInput) new DataInputStream(new ByteArrayInputStream(text)))) {
      while (parser.nextToken() != null) {
        var _ = parser.getText();
      }
    } catch (IOException e) {
      throw new AssertionError("the text is JSON", e);
    }
  }

  /// The kind of the next value.
  public Kind peek() {
    JsonToken token = parser.currentToken();
    if (token == null || token == JsonToken.FIELD_NAME) {
      token = advance();
    }
    // A switch with a case for null would be linked in a process's first load, which takes
    // milliseconds.
    if (token == null) {
      throw malformedAt(end, "unexpected-end", "the JSON ends before a value");
    }
    return switch (token) {
      case START_OBJECT -> Kind.OBJECT;
      case START_ARRAY -> Kind.ARRAY;
      case VALUE_STRING -> Kind.STRING;
      case VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT -> Kind.NUMBER;
      case VALUE_TRUE, VALUE_FALSE -> Kind.BOOLEAN;
      case VALUE_NULL -> Kind.NULL;
      case END_OBJECT, END_ARRAY, FIELD_NAME, VALUE_EMBEDDED_OBJECT, NOT_AVAILABLE ->
          throw new IllegalStateException("at " + token + ", which begins no value");
    };
  }

  /// Requires that the next value is of a kind.
  ///
  /// @param subject names the value in the error
  /// @throws MalformedFileException of kind `fault`, or of another kind if the value is no valid JSON
  public void require(Kind wanted, String fault, String subject) {
    if (peek() != wanted) {
      throw unwanted(wanted, fault, subject);
    }
  }

  /// Makes the error of [#require], for callers whose subject takes work.
  public MalformedFileException unwanted(Kind wanted, String fault, String subject) {
    return unwanted(fault, subject + " must be " + wanted.words + ", not " + peek().words);
  }

  /// Enters an object. Returns whether it has a member. Call this only if [#peek] says that the
  /// value is an object.
  public boolean beginObject() {
    return nextMember();
  }

  /// Moves on after a member's value. Returns true if another member follows, and false if the
  /// object has ended.
  public boolean nextMember() {
    return advance() == JsonToken.FIELD_NAME;
  }

  /// Returns the name of the member that has begun.
  public String memberName() {
    return wellFormed(currentText());
  }

  /// Enters an array. Returns whether it has an element. Call this only if [#peek] says that the
  /// value is an array.
  public boolean beginArray() {
    return nextElement();
  }

  /// Moves on after an element. Returns true if another element follows, and false if the array
  /// has ended.
  public boolean nextElement() {
    return advance() != JsonToken.END_ARRAY;
  }

  /// Reads a string. Call this only if [#peek] says that the value is a string.
  public String string() {
    return wellFormed(currentText());
  }

  /// Reads `true` or `false`. Call this only if [#peek] says that the value is a truth value.
  public boolean flag() {
    return parser.currentToken() == JsonToken.VALUE_TRUE;
  }

  /// Reads a number as it is written. Call this only if [#peek] says that the value is a number.
  /// Numbers past the largest double are refused even if nobody uses them, as in the reference.
  public String number() {
    String number = currentText();
    boolean scaled = number.indexOf('e') >= 0 || number.indexOf('E') >= 0;
    if ((scaled || number.length() > SURELY_FINITE_DIGITS)
        && Double.isInfinite(Double.parseDouble(number))) {
      throw malformed("number-out-of-range", "a number past the largest double");
    }
    return number;
  }

  /// Reads a whole number from 0 to 2⁶³-1, without fraction or exponent.
  ///
  /// @param noun what the number counts. The kinds of errors are `invalid-NOUN` for a value that is no
  ///     number, `negative-NOUN`, `fractional-NOUN` and `NOUN-too-large`
  public long count(String noun) {
    if (peek() != Kind.NUMBER) {
      throw unwanted(Kind.NUMBER, "invalid-" + noun, noun);
    }
    String number = number();
    if (number.startsWith("-")) {
      throw malformed("negative-" + noun, number);
    }
    if (parser.currentToken() == JsonToken.VALUE_NUMBER_FLOAT) {
      throw malformed("fractional-" + noun, number + " is not written as a whole number");
    }
    try {
      return Long.parseLong(number);
    } catch (NumberFormatException _) {
      throw malformed(noun + "-too-large", number + " is past 2⁶³-1");
    }
  }

  /// Skips the next value, of any kind, and checks it as strictly as if it were read.
  public void skip() {
    switch (peek()) {
      case OBJECT -> {
        for (boolean more = beginObject(); more; more = nextMember()) {
          memberName();
          skip();
        }
      }
      case ARRAY -> {
        for (boolean more = beginArray(); more; more = nextElement()) {
          skip();
        }
      }
      case STRING -> string();
      case NUMBER -> number();
      case BOOLEAN, NULL -> {}
    }
  }

  /// Counts an entry. Call this at the entry's value or name, before the entry is kept.
  ///
  /// @throws MalformedFileException of kind `too-many-entries` after [#MAX_ENTRIES] entries
  public void countEntry() {
    countEntry(MAX_ENTRIES);
  }

  /// Counts an entry, and throws if there are more than `most`.
  void countEntry(int most) {
    if (entries >= most) {
      throw malformed(
          "too-many-entries", "more than " + most + " tensors, files, notes and the like");
    }
    entries++;
  }

  /// Counts a note, which is also an entry.
  ///
  /// @throws MalformedFileException of kind `too-many-notes` after [#MAX_NOTES] notes
  public void countNote() {
    countEntry();
    if (notes == MAX_NOTES) {
      throw malformed("too-many-notes", "more than " + MAX_NOTES + " notes in metadata");
    }
    notes++;
  }

  /// Refuses anything but whitespace after the JSON.
  public void end() {
    try {
      if (parser.nextToken() == null) {
        return;
      }
    } catch (JsonProcessingException _) {
      throw trailing(lastRead());
    } catch (IOException e) {
      throw fault(e, false);
    }
    throw trailing(valueOffset());
  }

  /// Makes an error at the value or member name that was begun last.
  public MalformedFileException malformed(String kind, String detail) {
    return malformedAt(valueOffset(), kind, detail);
  }

  /// Makes an error about the next value as a whole, such as its kind. If the value is no valid JSON, this
  /// throws that error instead.
  public MalformedFileException unwanted(String kind, String detail) {
    peek();
    MalformedFileException unwanted = malformed(kind, detail);
    skip();
    return unwanted;
  }

  /// Makes an error at a file offset that [#valueOffset] gave earlier.
  public MalformedFileException malformedAt(long offset, String kind, String detail) {
    return new MalformedFileException(source.file(), offset, kind, detail);
  }

  /// The file offset of the value or member name that was begun last.
  public long valueOffset() {
    return text.offset(parser.currentTokenLocation().getCharOffset());
  }

  private @Nullable JsonToken advance() {
    try {
      return parser.nextToken();
    } catch (IOException e) {
      throw fault(e, false);
    }
  }

  private String currentText() {
    try {
      return parser.getText();
    } catch (IOException e) {
      throw fault(e, parser.currentToken() == JsonToken.VALUE_STRING);
    }
  }

  private MalformedFileException trailing(long offset) {
    return malformedAt(offset, "trailing-characters", "more follows the end of the JSON");
  }

  /// Returns Gantry's error for a `fault` that the parser has just thrown.
  ///
  /// @param inString whether the parser was reading a string that is a value
  private GantryException fault(IOException fault, boolean inString) {
    return switch (fault) {
      case JsonEOFException early -> malformedAt(end, "unexpected-end", words(early));
      case StreamConstraintsException bound ->
          malformedAt(lastRead(), passed(inString), words(bound));
      case JsonProcessingException syntax -> malformedAt(lastRead(), "invalid-json", words(syntax));
      case IOException other -> FileErrors.of("read", source.file().toString(), other);
    };
  }

  /// Returns the kind of error for one of Jackson's bounds that the text exceeds.
  private String passed(boolean inString) {
    if (parser.getParsingContext().getNestingDepth() > MAX_DEPTH) {
      return "nesting-too-deep";
    }
    // In an object, the fault is in a name unless a name is the current token, since its value
    // comes next.
    boolean inName =
        parser.getParsingContext().inObject() && parser.currentToken() != JsonToken.FIELD_NAME;
    return inString || inName ? "string-too-long" : "number-too-long";
  }

  /// The offset of the character that the parser read last.
  private long lastRead() {
    return text.offset(Math.max(0, parser.currentLocation().getCharOffset() - 1));
  }

  /// Returns Jackson's message without the parts that only a caller of Jackson could use.
  public static String words(JacksonException fault) {
    return ADVICE.matcher(fault.getOriginalMessage()).replaceAll("");
  }

  /// Refuses a lone surrogate, which Jackson accepts if it is escaped.
  private String wellFormed(String string) {
    OptionalInt lone = loneSurrogate(string);
    if (lone.isPresent()) {
      throw malformed(
          "lone-surrogate", String.format("\\u%04x without its other half", lone.getAsInt()));
    }
    return string;
  }

  /// Finds the index of the first lone surrogate, if there is one.
  public static OptionalInt loneSurrogate(String string) {
    int codePoint;
    for (int i = 0; i < string.length(); i += Character.charCount(codePoint)) {
      codePoint = string.codePointAt(i);
      if (codePoint >= Character.MIN_SURROGATE && codePoint <= Character.MAX_SURROGATE) {
        return OptionalInt.of(codePoint);
      }
    }
    return OptionalInt.empty();
  }
}

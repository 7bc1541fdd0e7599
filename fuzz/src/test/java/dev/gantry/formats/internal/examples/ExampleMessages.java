// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import com.google.protobuf.InvalidProtocolBufferException;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.tfrecord.proto.SequenceExample;
import java.lang.foreign.MemorySegment;

/// Compares the reading of messages in TFRecord files with the parser that protoc generates.
public final class ExampleMessages {
  private static final Location FILE = Location.of("file");

  private ExampleMessages() {}

  /// Reads a whole message. Both parsers must accept it, or both must refuse it.
  public static void whole(byte[] input) {
    boolean taken = true;
    MalformedFileException refusal = null;
    try {
      ExampleReader.ofAll().read(new RawRecord(FILE, 0, 0, MemorySegment.ofArray(input)));
    } catch (MalformedFileException refused) {
      taken = false;
      refusal = refused;
    }
    boolean expected;
    try {
      SequenceExample _ = SequenceExample.parseFrom(input);
      expected = true;
    } catch (InvalidProtocolBufferException _) {
      expected = false;
    }
    // The parser for Java accepts some longer numbers, which the parser for C++ refuses.
    boolean isLong = refusal != null && refusal.detail().contains("more than 10 bytes");
    if (taken != expected && !isLong) {
      throw new AssertionError("protobuf says " + expected + ", not " + taken + ": " + refusal);
    }
    if (refusal != null) {
      throw refusal;
    }
  }
}

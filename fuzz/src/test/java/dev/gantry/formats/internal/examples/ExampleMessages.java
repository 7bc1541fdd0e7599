// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import com.google.protobuf.InvalidProtocolBufferException;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.tfrecord.proto.SequenceExample;
import java.lang.foreign.MemorySegment;

/// Messages in TFRecord files, beside the parser that protoc generates.
public final class ExampleMessages {
  private static final Location FILE = Location.of("file");

  private ExampleMessages() {}

  /// Reads all of a message; both parsers must take it, or refuse it.
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
    // Java's parser passes over some numbers that are longer; C++'s refuses them.
    boolean isLong = refusal != null && refusal.detail().contains("more than 10 bytes");
    if (taken != expected && !isLong) {
      throw new AssertionError("protobuf says " + expected + ", not " + taken + ": " + refusal);
    }
    if (refusal != null) {
      throw refusal;
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.resident;

import dev.gantry.fuzz.Places;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/// Parsers of the answers of a server of resident weights.
public final class ResidentAnswers {
  private static final Duration LONGEST = Duration.ofSeconds(20);
  private static volatile byte[] answer = {};

  private ResidentAnswers() {}

  /// A server that answers each client with the last input and closes the connection.
  private static final class Server {
    static final Path SOCKET = Places.path("weights.sock");

    static {
      try {
        ServerSocketChannel door = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        var _ = door.bind(UnixDomainSocketAddress.of(SOCKET));
        Thread serving = new Thread(() -> serve(door), "resident");
        serving.setDaemon(true);
        serving.start();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    private static void serve(ServerSocketChannel door) {
      while (true) {
        try (SocketChannel client = door.accept()) {
          ByteBuffer left = ByteBuffer.wrap(answer);
          while (left.hasRemaining()) {
            int _ = client.write(left);
          }
        } catch (IOException _) {
          // The client has closed the connection.
        }
      }
    }
  }

  /// Reads a server's answer. No descriptors come with it, so the client must refuse every answer
  /// that describes weights.
  public static void answer(byte[] input) {
    answer = input;
    try (ResidentWeights held =
        ResidentWeights.hold(ResidentWeights.location(Server.SOCKET), LONGEST)) {
      if (!held.catalogue().parts().isEmpty()) {
        throw new AssertionError("weights without memory");
      }
    }
  }

  /// Reads a catalogue, which must be written as it was read.
  public static void catalogue(byte[] input) throws IOException {
    ResidentCatalogue catalogue = ResidentCatalogue.parse(input);
    if (!ResidentCatalogue.parse(catalogue.toBytes()).equals(catalogue)) {
      throw new AssertionError("a catalogue that was written is another when it is read");
    }
  }

  /// Returns a catalogue of two files.
  public static byte[] exampleCatalogue() {
    return new ResidentCatalogue(
            3,
            "GPU-12ab-34cd-56ef-78ab-90cd",
            "a.safetensors",
            List.of(
                new ResidentPart("a.safetensors", 4096, 8, 100, 4000, 3900),
                new ResidentPart("b", 10, 0, 0, 0, 0)))
        .toBytes();
  }

  /// Returns a complete answer of a server that has no files.
  public static byte[] exampleAnswer() {
    byte[] catalogue = new ResidentCatalogue(1, "", "", List.of()).toBytes();
    return ByteBuffer.allocate(20 + catalogue.length)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(0x5345525952544e47L)
        .putInt(Frames.PROTOCOL)
        .putInt(0)
        .putInt(catalogue.length)
        .put(catalogue)
        .array();
  }
}

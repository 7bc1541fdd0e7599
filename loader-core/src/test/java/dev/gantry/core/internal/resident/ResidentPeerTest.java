// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.resident;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.natives.ipc.LocalSockets;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.function.IntConsumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/// A client whose servers are not Gantry's, or send false data.
@EnabledOnOs(OS.LINUX)
@Timeout(60)
class ResidentPeerTest {
  private static final int BYTES = 4096;
  private static final Duration SHORT = Duration.ofMillis(100);

  @TempDir private Path folder;
  private Path socket;
  private Location location;

  @BeforeEach
  void name() {
    socket = folder.resolve("s.sock");
    location = ResidentWeights.location(socket);
  }

  /// Starts a server that answers one connection.
  private Thread answer(IntConsumer answer) {
    int _ = Libc.INSTANCE.unlink(socket);
    int listening = LocalSockets.serverSocket();
    assertThat(LocalSockets.listen(listening, socket)).isZero();
    return Thread.ofPlatform()
        .start(() -> {
          LocalSockets.poll(Map.of(listening, LocalSockets.POLLIN), new HashSet<>(), -1);
          int client = LocalSockets.accept(listening);
          answer.accept(client);
          Libc.INSTANCE.close(client);
          Libc.INSTANCE.close(listening);
        });
  }

  private static int memoryFile(long bytes, boolean sealed) {
    int file = LocalSockets.memoryFile("gantry-resident");
    assertThat(Libc.INSTANCE.ftruncate(file, bytes)).isZero();
    if (sealed) {
      assertThat(LocalSockets.seal(file)).isZero();
    }
    return file;
  }

  private static long memoryFiles() throws IOException {
    long count = 0;
    try (Stream<Path> all = Files.list(Path.of("/proc/self/fd"))) {
      for (Path one : all.toList()) {
        count +=
            Files.isSymbolicLink(one)
                    && Files.readSymbolicLink(one).toString().contains("gantry-resident")
                ? 1
                : 0;
      }
    }
    return count;
  }

  private void isRefused(byte[] catalogue, long bytes, boolean sealed, String reason)
      throws IOException {
    long before = memoryFiles();
    Thread server =
        answer(client -> {
          int file = memoryFile(bytes, sealed);
          assertThat(new Frames.Answer(catalogue, List.of(file)).send(client)).isTrue();
          Libc.INSTANCE.close(file);
        });
    assertThatThrownBy(() -> ResidentWeights.hold(location).close())
        .isInstanceOf(TransferException.class)
        .hasMessageContaining(reason)
        .hasMessageNotContaining("\n");
    Cleanup.join(server);
    assertThat(memoryFiles()).isEqualTo(before);
  }

  private static byte[] catalogue(String gpu, String entry, ResidentPart... files) {
    return new ResidentCatalogue(1, gpu, entry, List.of(files)).toBytes();
  }

  private static ResidentPart file(
      String name, long size, long phase, long from, long to, long capacity) {
    return new ResidentPart(name, size, phase, from, to, capacity);
  }

  @Test
  void memoryIsAsLongAsTheServerSaysAndStaysSo() throws IOException {
    String reason = "the server's memory of a is shorter than it says, or may change";
    isRefused(catalogue("", "a", file("a", BYTES, 8, 0, 0, 0)), BYTES, true, reason);
    isRefused(catalogue("", "a", file("a", BYTES, 0, 0, 0, 0)), BYTES, false, reason);
  }

  static List<byte[]> damaged() {
    String gpu = "GPU-01010101-0101-0101-0101-010101010101";
    ResidentPart good = file("a", BYTES, 0, 0, 0, 0);
    byte[] whole = catalogue("", "a", good);
    return List.of(
        new byte[0],
        ByteBuffer.allocate(12).putInt(1).putInt(-1).array(),
        ByteBuffer.allocate(12).putInt(1).putInt(Integer.MAX_VALUE).array(),
        Arrays.copyOf(whole, whole.length - 1),
        Arrays.copyOf(whole, whole.length + 1),
        new ResidentCatalogue(0, "", "a", List.of(good)).toBytes(),
        catalogue("", "b", good),
        catalogue("", "", good, good),
        catalogue("", "", file("../a", BYTES, 0, 0, 0, 0)),
        catalogue("", "", file("", BYTES, 0, 0, 0, 0)),
        catalogue("", "a", file("a", -1, 0, 0, 0, 0)),
        catalogue("", "a", file("a", Long.MAX_VALUE, 8, 0, 0, 0)),
        catalogue("", "a", file("a", BYTES, 256, 0, 0, 0)),
        catalogue("", "a", file("a", BYTES, -1, 0, 0, 0)),
        catalogue("cuda:0", "a", good),
        catalogue("", "a", file("a", BYTES, 0, 8, BYTES, 2 << 20)),
        catalogue(gpu, "a", file("a", BYTES, 0, 8, BYTES + 1, 2 << 20)),
        catalogue(gpu, "a", file("a", BYTES, 0, 9, 8, 2 << 20)),
        catalogue(gpu, "a", file("a", BYTES, 0, 8, BYTES, 100)),
        catalogue(gpu, "a", file("a", BYTES, 0, 8, BYTES, 0)),
        catalogue(gpu, "a", file("a", BYTES, 0, 8, 8, -1)));
  }

  @ParameterizedTest
  @MethodSource("damaged")
  void aCatalogueIsCheckedAsAHeaderIs(byte[] catalogue) throws IOException {
    String reason = "the catalogue of resident weights is not as this version writes it";
    isRefused(catalogue, BYTES, true, reason);
  }

  @Test
  void aCatalogueFitsItsDescriptors() throws IOException {
    ResidentPart a = file("a", BYTES, 0, 0, 0, 0);
    ResidentPart b = file("b", BYTES, 0, 0, 0, 0);
    String reason = "the server's catalogue does not fit its descriptors";
    isRefused(catalogue("", "a", a, b), BYTES, true, reason);
    isRefused(catalogue("", ""), BYTES, true, reason);
  }

  private static byte[] header(int protocol) {
    return ByteBuffer.allocate(20)
        .order(ByteOrder.LITTLE_ENDIAN)
        .put("GNTRYRES".getBytes(StandardCharsets.US_ASCII))
        .putInt(protocol)
        .array();
  }

  @Test
  void anotherVersionOfTheProtocolIsRefusedInOneLine() {
    Thread server = answer(client -> LocalSockets.send(client, header(1), 0, List.of()));
    assertThatThrownBy(() -> ResidentWeights.hold(location).close())
        .isInstanceOf(TransferException.class)
        .hasMessageContaining(
            "the server speaks version 1 of the protocol, and this client 3: start both with the"
                + " same version of Gantry")
        .hasMessageNotContaining("\n");
    Cleanup.join(server);
  }

  /// The client allocates no memory for such an answer.
  @ParameterizedTest
  @CsvSource({"12, 100001", "12, -1", "16, 67108865", "16, -1"})
  void anAnswerThatIsTooLongIsRefusedByItsHeader(int at, int count) {
    byte[] header = header(Frames.PROTOCOL);
    ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN).putInt(at, count);
    Thread server = answer(client -> LocalSockets.send(client, header, 0, List.of()));
    assertThatThrownBy(() -> ResidentWeights.hold(location).close())
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("the server's answer is not as its protocol says");
    Cleanup.join(server);
  }

  /// The kernel drops descriptors when the receiving process can open no more files.
  @Test
  void aDescriptorThatDoesNotComeIsMissed() {
    byte[] catalogue = catalogue("", "a", file("a", BYTES, 0, 0, 0, 0));
    byte[] answer = Arrays.copyOf(header(Frames.PROTOCOL), 21 + catalogue.length);
    ByteBuffer.wrap(answer)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putInt(12, 1)
        .putInt(16, catalogue.length);
    System.arraycopy(catalogue, 0, answer, 21, catalogue.length);
    Thread server = answer(client -> LocalSockets.send(client, answer, 0, List.of()));
    assertThatThrownBy(() -> ResidentWeights.hold(location).close())
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("0 of 1 descriptors came");
    Cleanup.join(server);
  }

  @Test
  void aServerThatTakesNoClientsIsGivenUp() throws IOException {
    try (ServerSocketChannel busy = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      UnixDomainSocketAddress address = UnixDomainSocketAddress.of(socket);
      // The kernel lets one more connection wait than the backlog says.
      busy.bind(address, 1);
      try (SocketChannel first = SocketChannel.open(StandardProtocolFamily.UNIX);
          SocketChannel second = SocketChannel.open(StandardProtocolFamily.UNIX)) {
        assertThat(first.connect(address) && second.connect(address)).isTrue();
        assertThatThrownBy(() -> ResidentWeights.hold(location, SHORT).close())
            .isInstanceOf(TransferException.class)
            .hasMessageContaining("the server takes no more clients in time");
      }
    }
  }

  @Test
  void aServerThatDoesNotAnswerIsGivenUp() throws IOException {
    try (ServerSocketChannel silent = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      silent.bind(UnixDomainSocketAddress.of(socket));
      assertThatThrownBy(() -> ResidentWeights.hold(location, SHORT).close())
          .isInstanceOf(TransferException.class)
          .hasMessage("connect failed: " + socket + ": the server does not answer in time");
    }
  }

  @Test
  void aServerThatAnswersByteAfterByteIsGivenUp() {
    byte[] answer = new byte[1 << 20];
    System.arraycopy(header(Frames.PROTOCOL), 0, answer, 0, 20);
    ByteBuffer.wrap(answer).order(ByteOrder.LITTLE_ENDIAN).putInt(16, answer.length);
    Thread server =
        answer(client -> {
          int sent = 1;
          for (int at = 0; sent > 0; at++) {
            sent = LocalSockets.send(client, new byte[] {answer[at]}, 0, List.of());
            LocalSockets.poll(Map.of(), new HashSet<>(), 1);
          }
        });
    assertThatThrownBy(() -> ResidentWeights.hold(location, SHORT).close())
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("the server does not answer in time");
    Cleanup.join(server);
  }
}

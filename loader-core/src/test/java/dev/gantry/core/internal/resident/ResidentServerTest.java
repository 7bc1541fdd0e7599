// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.resident;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.OwnProcess;
import dev.gantry.testing.stub.StubbedJvm;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// A server of resident weights with clients and servers that misbehave.
@EnabledOnOs(OS.LINUX)
@ExtendWith(NoLeaks.class)
@Timeout(60)
class ResidentServerTest {
  private static final int BYTES = 5000;
  private static final int FRAME_HEADER = 20;

  @TempDir private Path folder;
  private final BlockingQueue<String> log = new LinkedBlockingQueue<>();
  private final List<Thread> serving = new ArrayList<>();
  private GantrySession session;
  private Path file;

  @BeforeEach
  void open() throws IOException {
    session = GantrySession.open();
    file = Files.write(folder.resolve("weights"), new byte[BYTES]);
  }

  @AfterEach
  void end() {
    session.close();
    serving.forEach(Cleanup::join);
  }

  private static ResidentImage image(GantrySession session, Path file, int version, String entry) {
    return session.keepResident(
        version,
        entry,
        List.of(new ResidentSource(Location.of(file), BYTES, 8, BYTES)),
        Device.HOST,
        TransferOptions.defaults());
  }

  private ResidentServer serve(Path socket) {
    ResidentServer server = ResidentServer.listen(socket, log::add);
    server.publish(image(session, file, 1, "weights"));
    start(server);
    return server;
  }

  private void start(ResidentServer server) {
    serving.add(Thread.ofPlatform().start(server::run));
  }

  private static SocketChannel connect(Path socket) throws IOException {
    SocketChannel client = SocketChannel.open(StandardProtocolFamily.UNIX);
    client.connect(UnixDomainSocketAddress.of(socket));
    return client;
  }

  @Test
  void aClientThatDoesNotReadHoldsUpNeitherTheNextVersionNorTheEnd() throws Exception {
    Path socket = folder.resolve("s.sock");
    // The entry is longer than a socket's buffer.
    String entry = "e".repeat(1 << 20);
    try (ResidentServer server = ResidentServer.listen(socket, log::add)) {
      server.publish(image(session, file, 1, entry));
      start(server);
      try (SocketChannel slow = connect(socket);
          SocketChannel slower = connect(socket)) {
        InputStream answer = Channels.newInputStream(slow);
        ByteBuffer header = ByteBuffer.wrap(answer.readNBytes(FRAME_HEADER));
        assertThat(slower.read(ByteBuffer.allocate(FRAME_HEADER))).isEqualTo(FRAME_HEADER);
        server.publish(image(session, file, 2, "weights"));
        try (ResidentWeights held = ResidentWeights.hold(server.location())) {
          assertThat(held.catalogue().version()).isEqualTo(2);
        }
        // A download that began with the first version also ends with it.
        int length = Integer.reverseBytes(header.getInt(16));
        assertThat(answer.readNBytes(1)).hasSize(1);
        byte[] catalogue = answer.readNBytes(length);
        assertThat(ByteBuffer.wrap(catalogue).getInt()).isEqualTo(1);
        assertThat(new String(catalogue, StandardCharsets.UTF_8)).contains(entry);
        // The servers close while a client does not read.
        List.of(server).forEach(ResidentServer::close);
      }
    }
    assertThat(log).noneMatch(line -> line.contains("answer"));
  }

  @Test
  void theVersionBeforeIsGivenUp() throws IOException {
    try (ResidentServer server = ResidentServer.listen(folder.resolve("s.sock"), log::add)) {
      server.publish(image(session, file, 1, "weights"));
      List<String> one = OwnProcess.programsDescriptors();
      server.publish(image(session, file, 2, "weights"));
      assertThat(OwnProcess.programsDescriptors()).isEqualTo(one);
    }
  }

  /// The server reads nothing from a client: it treats any byte as the client's end.
  @Test
  void aClientThatTalksIsLeftAndOthersAreServed() throws IOException {
    try (ResidentServer server = serve(folder.resolve("s.sock"));
        SocketChannel talker = connect(folder.resolve("s.sock"))) {
      assertThat(talker.write(ByteBuffer.allocate(4096))).isEqualTo(4096);
      try {
        // Reads until the server closes the connection.
        assertThat(Channels.newInputStream(talker).readAllBytes()).isNotNull();
      } catch (IOException _) {
        // A connection that is closed with unread bytes ends with a reset.
      }
      try (ResidentWeights held = ResidentWeights.hold(server.location())) {
        assertThat(held.catalogue().version()).isEqualTo(1);
        assertThat(server.readers()).isEqualTo(Map.of(1, 1));
      }
    }
  }

  @Test
  void aLogThatWaitsHoldsUpNeitherTheNextVersionNorTheEnd() throws Exception {
    Path socket = folder.resolve("s.sock");
    CountDownLatch told = new CountDownLatch(1);
    CountDownLatch released = new CountDownLatch(1);
    ResidentServer server =
        ResidentServer.listen(
            socket,
            _ -> {
              told.countDown();
              try {
                released.await();
              } catch (InterruptedException e) {
                throw new IllegalStateException(e);
              }
            });
    server.publish(image(session, file, 1, "weights"));
    start(server);
    ResidentWeights.hold(server.location()).close();
    told.await();
    server.publish(image(session, file, 2, "weights"));
    server.close();
    assertThat(released.getCount()).isEqualTo(1);
    released.countDown();
  }

  @Test
  void aSecondServerLeavesTheFirstOneItsLock() throws IOException {
    Path socket = folder.resolve("s.sock");
    Path lock = folder.resolve("s.sock.lock");
    try (ResidentServer _ = serve(socket)) {
      for (int i = 0; i < 2; i++) {
        assertThatThrownBy(() -> ResidentServer.listen(socket, log::add))
            .isInstanceOf(MisuseException.class)
            .hasMessageContaining("--socket must be one where no server listens");
      }
      // Asks for the lock as another process would: through another open file.
      int other = Libc.INSTANCE.open(lock, FileCalls.O_RDWR, 0);
      assertThat(Libc.INSTANCE.lock(other, FileCalls.F_WRLCK, 0, 1))
          .isEqualTo(-Errno.EAGAIN.code());
      Libc.INSTANCE.close(other);
    }
  }

  @Test
  void theSocketsFolderMayHaveAnyName() {
    Path socket = folder.resolve("held-1").resolve("held-2");
    try (ResidentServer server = serve(socket);
        ResidentWeights held = ResidentWeights.hold(server.location())) {
      assertThat(ResidentWeights.isServer(server.location())).isTrue();
      assertThat(ResidentWeights.isHeld(held.entry())).isTrue();
      assertThat(ResidentWeights.isServer(held.entry())).isFalse();
      assertThat(ResidentStore.find(held.entry())).hasValueSatisfying(ResidentFile::close);
    }
  }

  @Test
  void whatIsNoSocketStays() throws IOException {
    assertThatThrownBy(() -> ResidentServer.listen(file, log::add))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("--socket must name a socket or nothing");
    assertThat(Files.size(file)).isEqualTo(BYTES);
  }

  /// A server that can open no more files.
  static final class Full {
    private static final int RLIMIT_NOFILE = 7;
    private static final long FEW = 100;
    private static final int LOOKS_SECONDS = 1;

    public static void main(String[] arguments) throws Throwable {
      Path file = Path.of(arguments[0]);
      Path socket = file.resolveSibling("s.sock");
      BlockingQueue<String> log = new LinkedBlockingQueue<>();
      try (GantrySession session = GantrySession.open();
          ResidentServer server = ResidentServer.listen(socket, log::add)) {
        server.publish(image(session, file, 1, "weights"));
        Thread.ofPlatform().daemon().start(server::run);
        // Loads the classes while their files can still be opened.
        ResidentWeights.hold(server.location()).close();
        log.take();
        System.out.println(log.take() + Errno.failure(1).describe());
        List<Integer> files = new ArrayList<>();
        try (SocketChannel client = SocketChannel.open(StandardProtocolFamily.UNIX)) {
          limitFiles();
          for (int one = 0; one >= 0; ) {
            one = Libc.INSTANCE.open(Path.of("/dev/null"), FileCalls.O_RDONLY, 0);
            files.add(one);
          }
          client.connect(UnixDomainSocketAddress.of(socket));
          System.out.println(log.take());
          // The server tries to accept several times, and logs its lack of files only once.
          System.out.println(log.poll(LOOKS_SECONDS, TimeUnit.SECONDS));
          files.forEach(Libc.INSTANCE::close);
          System.out.println(log.take());
        }
        System.out.println(log.take());
      }
    }

    private static void limitFiles() throws Throwable {
      FunctionDescriptor prototype =
          FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.ADDRESS);
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment limit = arena.allocateFrom(ValueLayout.JAVA_LONG, FEW, FEW);
        int result =
            (int)
                Linker.nativeLinker()
                    .downcallHandle(
                        Linker.nativeLinker().defaultLookup().findOrThrow("setrlimit"), prototype)
                    .invokeExact(RLIMIT_NOFILE, limit);
        if (result != 0) {
          throw new IllegalStateException("setrlimit");
        }
      }
    }
  }

  @Test
  void aServerWithoutDescriptorsSaysSoOnceAndServesWhenItHasSome() {
    ChildJvm.Result result = StubbedJvm.run(Full.class, Map.of(), file.toString());
    List<String> lines = result.out().lines().toList();
    assertThat(lines).as("%s", result).hasSize(5);
    assertThat(lines.get(1)).contains("EMFILE", "ulimit -n");
    assertThat(lines.subList(2, 4)).containsExactly("null", "a client has version 1; 1 now");
    assertThat(lines.getLast()).startsWith("a client of version 1 left");
  }

  @Test
  void aVersionThatComesAfterTheEndIsFreed() throws IOException {
    ResidentServer server = ResidentServer.listen(folder.resolve("s.sock"), log::add);
    List<String> before = OwnProcess.programsDescriptors();
    ResidentImage late = image(session, file, 1, "weights");
    server.close();
    server.publish(late);
    assertThat(before).containsAll(OwnProcess.programsDescriptors());
  }

  @Test
  void aClosedClientServesNoFilesAndAClosedServerLeavesNoSocket() {
    Path socket = folder.resolve("s.sock");
    try (ResidentServer server = serve(socket)) {
      ResidentWeights held = ResidentWeights.hold(server.location());
      Location entry = held.entry();
      ResidentFile opened = ResidentStore.find(entry).orElseThrow();
      held.close();
      assertThat(ResidentStore.find(entry)).isEmpty();
      assertThat(held.open(entry)).isEmpty();
      opened.close();
    }
    assertThat(socket).doesNotExist();
  }
}

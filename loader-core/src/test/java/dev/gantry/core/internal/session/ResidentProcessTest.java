// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.GantryException;
import dev.gantry.core.Location;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.resident.ResidentImage;
import dev.gantry.core.internal.resident.ResidentServer;
import dev.gantry.core.internal.resident.ResidentSource;
import dev.gantry.core.internal.resident.ResidentWeights;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.stub.StubControls;
import dev.gantry.testing.stub.StubbedJvm;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// Resident weights of a GPU whose server and clients are separate processes.
@EnabledOnOs(OS.LINUX)
@Timeout(120)
class ResidentProcessTest {
  private static final int BYTES = 3 << 20;
  private static final int HEADER = 4096;
  private static final int PIECE = 64 << 10;
  private static final int CLIENTS = 50;
  private static final int NOT_SUPPORTED = 801;
  private static final int OTHER_USER = 65_534;
  private static final String VISIBLE = "GANTRY_STUB_CUDA_VISIBLE";
  private static final Device GPU = new Device.Cuda(0);

  @TempDir private Path folder;

  private static ResidentImage keep(GantrySession session, Path file, Device device) {
    return session.keepResident(
        1,
        "weights",
        List.of(new ResidentSource(Location.of(file), BYTES, HEADER, BYTES)),
        device,
        TransferOptions.defaults());
  }

  private static byte[] makeFile(Path file) throws IOException {
    byte[] bytes = new byte[BYTES];
    new Random(1).nextBytes(bytes);
    Files.write(file, bytes);
    return bytes;
  }

  static final class Server {
    public static void main(String[] arguments) {
      try (GantrySession session = GantrySession.open();
          ResidentServer server = ResidentServer.listen(Path.of(arguments[1]), _ -> {})) {
        Device device = arguments.length > 2 ? Device.parse(arguments[2]) : GPU;
        server.publish(keep(session, Path.of(arguments[0]), device));
        System.out.println("ready");
        server.run();
      }
    }
  }

  /// Starts a server, maps its memory, kills it, and uses the memory further.
  static final class Client {
    public static void main(String[] arguments) throws Exception {
      Path file = Path.of(arguments[0]).resolve("weights");
      Path socket = Path.of(arguments[0]).resolve("private/s.sock");
      byte[] expected = Arrays.copyOfRange(makeFile(file), HEADER, BYTES);
      Process server = start(file, socket, GPU);
      Location location = ResidentWeights.location(socket);
      try (GantrySession session = GantrySession.open()) {
        try (ResidentWeights held = ResidentWeights.hold(location);
            Loaded loaded = load(session, held, GPU)) {
          System.out.println(Arrays.equals(bytes(loaded), expected));
          session.freeIdle();
          long before = deviceBytes();
          LiveResources.Snapshot live = LiveResources.snapshot();
          for (int i = 0; i < CLIENTS; i++) {
            try (ResidentWeights another = ResidentWeights.hold(location);
                Loaded more = load(session, another, GPU)) {
              if (deviceBytes() == before || more.regions().isEmpty()) {
                throw new IllegalStateException("nothing was mapped");
              }
            }
          }
          System.out.println(deviceBytes() == before && LiveResources.snapshot().equals(live));
          System.out.println(copyOnDevice(session, held, expected));
          server.destroyForcibly().waitFor();
          System.out.println(Arrays.equals(bytes(loaded), expected));
        }
        session.freeIdle();
        System.out.println(deviceBytes());
        ResidentWeights.hold(location).close();
      } catch (GantryException e) {
        System.out.println(e.getMessage());
      } finally {
        server.destroyForcibly().waitFor();
      }
    }

    /// Starts a server, which sees all devices in the host's order.
    private static Process start(Path file, Path socket, Device device) throws IOException {
      ProcessBuilder builder =
          ChildJvm.command(List.of(), Server.class, file, socket, device)
              .redirectError(ProcessBuilder.Redirect.INHERIT);
      builder.environment().remove(VISIBLE);
      Process process = builder.start();
      BufferedReader lines = process.inputReader();
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        if (line.equals("ready")) {
          return process;
        }
      }
      throw new IllegalStateException("the server ended");
    }

    private static Loaded load(GantrySession session, ResidentWeights held, Device device) {
      List<ExtentRequest> wanted =
          IntStream.range(0, (BYTES - HEADER) / PIECE)
              .mapToObj(
                  i -> new ExtentRequest(new Extent(held.entry(), HEADER + i * PIECE, PIECE), 256))
              .toList();
      ExtentRequest rest =
          new ExtentRequest(
              new Extent(
                  held.entry(),
                  HEADER + (long) wanted.size() * PIECE,
                  BYTES - HEADER - (long) wanted.size() * PIECE),
              256);
      return session.load(
          Stream.concat(wanted.stream(), Stream.of(rest)).toList(),
          device,
          TransferOptions.defaults());
    }

    private static byte[] bytes(Loaded loaded) {
      ByteBuffer all = ByteBuffer.allocate(BYTES - HEADER);
      for (Region region : loaded.regions()) {
        byte[] bytes = new byte[(int) region.length()];
        region.copyTo(MemorySegment.ofArray(bytes));
        all.put(bytes);
      }
      return all.array();
    }

    /// Copies the weights into this process's own device memory, without host memory.
    private static boolean copyOnDevice(
        GantrySession session, ResidentWeights held, byte[] expected) {
      StubControls stub = StubControls.cuda();
      CudaContext context = CudaContext.of(new Device.Cuda(0));
      DeviceSlab own = DeviceSlab.allocate(context, PIECE);
      try {
        long toHost = stub.count("to host bytes");
        long toDevice = stub.count("to device bytes");
        Region region = new Region(own, 0, PIECE);
        Extent extent = new Extent(held.entry(), HEADER + 100, PIECE);
        session.read(
            List.of(new ReadInto("piece", extent, region.source())), TransferOptions.defaults());
        boolean direct =
            stub.count("to host bytes") == toHost && stub.count("to device bytes") == toDevice;
        byte[] bytes = new byte[PIECE];
        region.copyTo(MemorySegment.ofArray(bytes));
        return direct && Arrays.equals(bytes, Arrays.copyOfRange(expected, 100, 100 + PIECE));
      } finally {
        own.release();
      }
    }

    private static long deviceBytes() {
      return StubControls.cuda().count("device bytes");
    }
  }

  @Test
  void aClientGoesOnAfterTheServersEnd() {
    ChildJvm.Result result = StubbedJvm.run(Client.class, Map.of(), folder.toString());
    assertThat(result.out().lines())
        .as("%s", result)
        .hasSize(6)
        .startsWith("true", "true", "true", "true", "0")
        .last()
        .asString()
        .contains("no server of resident weights listens there");
  }

  /// Maps the memory of a server to which the GPUs have other numbers, or which sees more GPUs.
  static final class Reordered {
    public static void main(String[] arguments) throws Exception {
      Path file = Path.of(arguments[0]).resolve("weights");
      Path socket = Path.of(arguments[0]).resolve("private/s.sock");
      byte[] expected = Arrays.copyOfRange(makeFile(file), HEADER, BYTES);
      Process server = Client.start(file, socket, new Device.Cuda(1));
      try (GantrySession session = GantrySession.open();
          ResidentWeights held = ResidentWeights.hold(ResidentWeights.location(socket))) {
        // The file's header lies in host memory, so it can be loaded in any case.
        ExtentRequest header = new ExtentRequest(new Extent(held.entry(), 0, HEADER), 1);
        session.load(List.of(header), Device.HOST, TransferOptions.defaults()).close();
        System.out.println(held.device());
        try (Loaded loaded = Client.load(session, held, held.device())) {
          System.out.println(loaded.report().bytes());
          System.out.println(Arrays.equals(Client.bytes(loaded), expected));
        }
        System.out.println(StubControls.cuda().count("mapped by others"));
      } catch (GantryException e) {
        System.out.println(e.getClass().getSimpleName() + " " + e.getMessage());
      } finally {
        server.destroyForcibly().waitFor();
      }
    }

    static List<String> run(Path folder, String visible) {
      return StubbedJvm.run(
              Reordered.class,
              Map.of("GANTRY_STUB_CUDA_DEVICES", "2", VISIBLE, visible),
              folder.toString())
          .out()
          .lines()
          .toList();
    }
  }

  @Test
  void aClientThatSeesTheGpusInAnotherOrderMapsTheSameOne() {
    assertThat(Reordered.run(folder, "1,0")).containsExactly("cuda:0", "0", "true", "0");
  }

  @Test
  void aClientThatDoesNotSeeTheGpuIsToldInOneLine() {
    assertThat(Reordered.run(folder, "0"))
        .singleElement()
        .asString()
        .startsWith("DeviceUnavailableException ")
        .contains(
            "s.sock lies on GPU-02020202-0202-0202-0202-020202020202, which this process does not"
                + " see");
  }

  /// Keeps and maps weights while the driver refuses one step after the other.
  static final class Refused {
    public static void main(String[] arguments) throws IOException {
      Path file = Path.of(arguments[0]).resolve("weights");
      makeFile(file);
      try (GantrySession session = GantrySession.open()) {
        for (String function : List.of("cuMemCreate", "cuMemExportToShareableHandle")) {
          StubControls.cuda().fail(function, 0, NOT_SUPPORTED, 0);
          try (ResidentImage image = keep(session, file, GPU)) {
            System.out.println(image.bytes());
          } catch (GantryException e) {
            System.out.println(e.getMessage());
          }
          StubControls.cuda().clear();
        }
        Path socket = Path.of(arguments[0]).resolve("private/s.sock");
        try (ResidentServer server = ResidentServer.listen(socket, _ -> {})) {
          server.publish(keep(session, file, GPU));
          Thread.ofPlatform().daemon().start(server::run);
          StubControls.cuda().fail("cuMemImportFromShareableHandle", 0, NOT_SUPPORTED, 0);
          try (ResidentWeights held = ResidentWeights.hold(server.location());
              Loaded loaded = Client.load(session, held, GPU)) {
            System.out.println(loaded.regions());
          } catch (GantryException e) {
            System.out.println(e.getMessage());
          }
        }
        session.freeIdle();
      }
      System.out.println(StubControls.cuda().count("device bytes"));
    }
  }

  @Test
  void aDriverThatSharesNoMemoryIsToldInOneLine() {
    ChildJvm.Result result = StubbedJvm.run(Refused.class, Map.of(), folder.toString());
    List<String> lines = result.out().lines().toList();
    assertThat(lines).as("%s", result).hasSize(4).last().isEqualTo("0");
    assertThat(lines.get(0))
        .contains("cuMemCreate", "memory of a GPU that processes share", "CUDA 801");
    assertThat(lines.get(1)).contains("cuMemExportToShareableHandle", "CUDA 801");
    assertThat(lines.get(2)).contains("cuMemImportFromShareableHandle", "CUDA 801");
  }

  /// Connects to another user's server, then serves another user's client. The process takes the
  /// other user's identity while it binds and connects.
  static final class OtherUser {
    private static final MethodHandle SET_USER =
        Linker.nativeLinker()
            .downcallHandle(
                Linker.nativeLinker().defaultLookup().findOrThrow("seteuid"),
                FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT));

    private interface Step {
      void run() throws IOException;
    }

    private static void as(int user, Step step) throws Throwable {
      if ((int) SET_USER.invokeExact(user) != 0) {
        throw new IllegalStateException("seteuid");
      }
      try {
        step.run();
      } finally {
        int _ = (int) SET_USER.invokeExact(0);
      }
    }

    public static void main(String[] arguments) throws Throwable {
      Path open = Path.of(arguments[0]);
      BlockingQueue<String> log = new LinkedBlockingQueue<>();
      try (ServerSocketChannel theirs = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
        Path socket = open.resolve("theirs.sock");
        as(OTHER_USER, () -> theirs.bind(UnixDomainSocketAddress.of(socket)));
        ResidentWeights.hold(ResidentWeights.location(socket)).close();
      } catch (GantryException e) {
        System.out.println(e.getMessage());
      }
      Path file = open.resolve("weights");
      makeFile(file);
      Path socket = open.resolve("ours/s.sock");
      try (GantrySession session = GantrySession.open();
          ResidentServer server = ResidentServer.listen(socket, log::add);
          SocketChannel client = SocketChannel.open(StandardProtocolFamily.UNIX)) {
        server.publish(keep(session, file, Device.HOST));
        // Opens the socket to all users, as a careless owner would.
        Files.setPosixFilePermissions(
            socket.getParent(), PosixFilePermissions.fromString("rwxrwxrwx"));
        Files.setPosixFilePermissions(socket, PosixFilePermissions.fromString("rwxrwxrwx"));
        Thread.ofPlatform().daemon().start(server::run);
        as(OTHER_USER, () -> client.connect(UnixDomainSocketAddress.of(socket)));
        System.out.println(log.take());
        System.out.println(client.read(ByteBuffer.allocate(1)));
      }
    }
  }

  @Test
  void anotherUsersProcessesAreRefused() throws IOException {
    assumeTrue(Files.getAttribute(Path.of("/proc/self"), "unix:uid").equals(0));
    Path open =
        Files.createTempDirectory(
            Path.of("/tmp"),
            "gantry",
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    try {
      Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
      ChildJvm.Result result = StubbedJvm.run(OtherUser.class, Map.of(), open.toString());
      List<String> lines = result.out().lines().toList();
      assertThat(lines).as("%s", result).hasSize(3);
      assertThat(lines.getFirst()).contains("the server is another user's");
      assertThat(lines.subList(1, 3)).containsExactly("another user's process was refused", "-1");
    } finally {
      try (var files = Files.walk(open)) {
        for (Path one : files.sorted(Comparator.reverseOrder()).toList()) {
          Files.delete(one);
        }
      }
    }
  }
}

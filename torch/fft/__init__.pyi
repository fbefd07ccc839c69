# Fourier transforms: the operators under the names that torch.fft gives them.

from torch._C._fft import fft_fft as fft
from torch._C._fft import fft_fft2 as fft2
from torch._C._fft import fft_fftfreq as fftfreq
from torch._C._fft import fft_fftn as fftn
from torch._C._fft import fft_fftshift as fftshift
from torch._C._fft import fft_hfft as hfft
from torch._C._fft import fft_hfft2 as hfft2
from torch._C._fft import fft_hfftn as hfftn
from torch._C._fft import fft_ifft as ifft
from torch._C._fft import fft_ifft2 as ifft2
from torch._C._fft import fft_ifftn as ifftn
from torch._C._fft import fft_ifftshift as ifftshift
from torch._C._fft import fft_ihfft as ihfft
from torch._C._fft import fft_ihfft2 as ihfft2
from torch._C._fft import fft_ihfftn as ihfftn
from torch._C._fft import fft_irfft as irfft
from torch._C._fft import fft_irfft2 as irfft2
from torch._C._fft import fft_irfftn as irfftn
from torch._C._fft import fft_rfft as rfft
from torch._C._fft import fft_rfft2 as rfft2
from torch._C._fft import fft_rfftfreq as rfftfreq
from torch._C._fft import fft_rfftn as rfftn

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
